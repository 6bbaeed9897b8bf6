"""Gives every finding of a repository a place in a file that exists:
editors and code hosts need one.
"""

# os is several times faster than pathlib.
# ruff: noqa: PTH113, PTH118, PTH119

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice

from constructs_triton_core.findings import Finding, Place
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.model.folder import CONFIG_FILE
from triton_model_check.model_config.locations import TOKEN
from triton_model_check.model_config.text import decode
from triton_model_check.untrusted.limits import MAX_TEXT_BYTES
from triton_model_check.untrusted.unsaved_files import unsaved_content

#: Files whose first line says something to a person; of others, the configuration is shown.
_TEXT = (".json", ".pbtxt", ".py", ".toml", ".txt")
_MOST_FILES = 10_000


def with_places(findings: Iterable[Finding], root: str | os.PathLike[str]) -> Iterator[Finding]:
    """Yield the findings of the folder ``root``, each with a place;
    one that has a place keeps it.
    """
    files = _Files(os.fspath(root))
    for finding in findings:
        if finding.place is None:
            yield replace(finding, place=files.place(finding))
        else:
            yield finding


class _Files:
    """The files of one repository."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lines = cache(self._read_lines)
        self._first_file = cache(self._find_first_file)

    def place(self, finding: Finding) -> Place:
        """Return the line of the finding, or the beginning of the file that stands for its path."""
        if finding.line is None:
            return Place(self._file_for(finding.path), 1, 1, 1, 1)

        # The file may have become shorter since it was checked.
        lines = self._lines(finding.path)
        line = min(finding.line, len(lines))
        text = lines[line - 1].rstrip()
        if finding.column is None:
            indentation = len(text) - len(text.lstrip())
            return Place(finding.path, line, indentation + 1, line, len(text) + 1)

        is_there = line == finding.line
        start = min(finding.column - 1, len(text)) if is_there else len(text)
        token = TOKEN.match(text, start)
        end = token.end() if token else start
        return Place(finding.path, line, start + 1, line, end + 1)

    def _read_lines(self, path: str) -> list[str]:
        place = os.path.join(self._root, path)
        unsaved = unsaved_content(place)
        try:
            content = read_regular(place, MAX_TEXT_BYTES) if unsaved is None else unsaved
            return decode(content).split("\n")
        except (OSError, ValueError):
            return [""]

    def _file_for(self, path: str) -> str:
        """Return the file itself if a person reads it, else the one that stands for its model."""
        parts = path.split("/")
        is_inside = not {"", ".", ".."}.intersection(parts)
        if is_inside and path.endswith(_TEXT) and _is_file(os.path.join(self._root, path)):
            return path
        model = f"{parts[0]}/" if is_inside else ""
        return self._first_file(model) or self._first_file("") or model + CONFIG_FILE

    def _find_first_file(self, folder: str) -> str:
        """Return the configuration that is nearest to a folder, else its first file,
        or "" without one.
        """
        top = os.path.join(self._root, folder)
        if _is_file(os.path.join(top, CONFIG_FILE)):
            return folder + CONFIG_FILE
        files = filter(os.path.isfile, islice(_paths_below(top), _MOST_FILES))
        first = min(files, key=_distance, default="")
        return first and os.path.relpath(first, self._root).replace(os.sep, "/")


def _is_file(path: str) -> bool:
    """Whether a file exists, on disk or only in an editor."""
    return unsaved_content(path) is not None or os.path.isfile(path)


def _paths_below(folder: str) -> Iterator[str]:
    for inner, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(inner, name)


def _distance(path: str) -> tuple[bool, int, str]:
    """Sort a configuration before other files, and the nearest one first."""
    return os.path.basename(path) != CONFIG_FILE, path.count(os.sep), path
