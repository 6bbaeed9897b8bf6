"""Gives every finding of a repository a place in a file that exists: editors and code hosts need one."""

# os is several times faster than pathlib.
# ruff: noqa: PTH113, PTH118

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from constructs_triton_core.findings import Finding, Place
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.model_config.folder import CONFIG_FILE
from triton_model_check.model_config.locations import TOKEN
from triton_model_check.model_config.text import decode
from triton_model_check.model_config.text_spellings import MAX_TEXT_BYTES

#: Files whose first line says something to a person; of others, the configuration is shown.
_TEXT = (".json", ".pbtxt", ".py", ".toml", ".txt")


def with_places(findings: Iterable[Finding], root: str | os.PathLike[str]) -> Iterator[Finding]:
    """Yield the findings with their places; one that has a place already, keeps it.

    Args:
        findings: Those of one repository.
        root: The folder that was checked.
    """
    places = _Places(os.fspath(root))
    for each in findings:
        yield each if each.place is not None else replace(each, place=places.of(each))


class _Places:
    """The files of one repository."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._first_file = cache(self._find_first_file)
        self._lines = cache(self._read_lines)

    def of(self, finding: Finding) -> Place:
        """Return the line of the finding, or the beginning of the file that stands for its path."""
        if finding.line is None:
            return Place(self._file_for(finding.path), 1, 1, 1, 1)
        lines = self._lines(finding.path)
        line = min(finding.line, len(lines))
        text = lines[line - 1].rstrip()
        if finding.column is None:
            start, end = len(text) - len(text.lstrip()), len(text)
        else:
            start = min(finding.column - 1, len(text)) if line == finding.line else len(text)
            token = TOKEN.match(text, start)
            end = token.end() if token else start
        return Place(finding.path, line, start + 1, line, end + 1)

    def _read_lines(self, path: str) -> list[str]:
        try:
            return decode(read_regular(os.path.join(self._root, path), MAX_TEXT_BYTES)).split("\n")
        except (OSError, ValueError):
            return [""]

    def _file_for(self, path: str) -> str:
        """Return the file itself if a person reads it, else the one that stands for its model."""
        parts = [] if path == "." else path.split("/")
        is_inside = not {"", ".."}.intersection(parts)
        if is_inside and path.endswith(_TEXT) and os.path.isfile(os.path.join(self._root, path)):
            return path
        models = parts[:1] if is_inside else []
        return self._first_file(*models) or self._first_file() or "/".join((*models, CONFIG_FILE))

    def _find_first_file(self, *below: str) -> str | None:
        """Return the configuration in a folder, or below it, or the first file; ``None`` if it is empty."""
        top = os.path.join(self._root, *below)
        _, names, _ = next(os.walk(top), ("", [], []))
        for parts in ((CONFIG_FILE,), *((name, CONFIG_FILE) for name in sorted(names))):
            if os.path.isfile(os.path.join(top, *parts)):
                return "/".join((*below, *parts))
        for folder, folders, files in os.walk(top):
            folders.sort()
            for name in sorted(files):
                if os.path.isfile(path := os.path.join(folder, name)):
                    return os.path.relpath(path, self._root).replace(os.sep, "/")
        return None
