"""What the checks ask of all files of a model that packing puts into its archive,
whatever reads them.
"""

# os is several times faster than pathlib; the aim is a thousand folders per second.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_files.wrong_content import POINTER_BYTES, is_pointer
from triton_model_check.untrusted.limits import MAX_DEPTH

_CONFIG = (CONFIG_FILE,)
_Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """Paths of files and folders of a model, relative to the repository.

    Args:
        git_lfs_pointers: Files that are Git LFS pointers.
        with_windows_lines: ``config.pbtxt`` and Python files whose first line ends with CR LF.
        not_composed: Files and folders whose name is not in the Unicode form NFC.
        same_on_some_disks: Groups whose names differ only in case or Unicode form.
    """

    git_lfs_pointers: tuple[str, ...]
    with_windows_lines: tuple[str, ...]
    not_composed: tuple[str, ...]
    same_on_some_disks: tuple[tuple[str, ...], ...]


class PackedFiles:
    """The files of one model that are packed. They are looked at once, all together.

    ``leaves_out`` and ``follows`` say whether packing leaves out a path of the repository (a
    folder's path ends in ``/``), and follows a link to a folder.
    """

    def __init__(
        self, folder: ModelFolder, leaves_out: Callable[[str], bool], follows: Callable[[str], bool]
    ) -> None:
        self._folder = folder
        self._leaves_out = leaves_out
        self._follows = follows

    @property
    def size_bytes(self) -> int:
        """Sum of the sizes of all files."""
        files = (parts for _, files in self._folders() for parts in files if self._is_packed(parts))
        return sum(self._folder.size_of(*parts) or 0 for parts in files)

    @cached_property
    def findings(self) -> Findings:
        """What is wrong with the files. Only the beginning of small files and of code is read."""
        pointers: list[_Parts] = []
        windows: list[_Parts] = []
        decomposed: list[_Parts] = []
        similar: list[tuple[str, ...]] = []
        for folder, files in self._folders():
            names = self._folder.list(*folder)
            decomposed += [(*folder, name) for name in names if not is_composed(name)]
            similar += self._same_on_some_disks(folder, names)
            for parts in files:
                is_code = parts[-1].endswith(".py") or parts == _CONFIG
                head = self._folder.head(*parts, smaller_than=None if is_code else POINTER_BYTES)
                if is_pointer(head):
                    pointers.append(parts)
                elif is_code and _has_windows_lines(head):
                    windows.append(parts)

        return Findings(
            self._packed(pointers),
            self._packed(windows),
            self._packed(decomposed),
            tuple(similar),
        )

    def _same_on_some_disks(self, folder: _Parts, names: Collection[str]) -> list[tuple[str, ...]]:
        """Return the groups of names in a folder of which some disks keep only one."""
        if len(names) < 2:
            return []
        groups = []
        for similar_names in same_on_some_disks(names):
            packed = self._packed([(*folder, name) for name in similar_names])
            if len(packed) > 1:
                groups.append(packed)
        return groups

    def _folders(self) -> Iterator[tuple[_Parts, list[_Parts]]]:
        """Yield each folder that is not left out, with its files; each once."""
        waiting: list[_Parts] = [()]
        seen: set[tuple[int, int]] = set()
        while waiting:
            folder = waiting.pop()
            entries = self._folder.list(*folder)
            yield folder, [(*folder, name) for name, is_folder in entries.items() if not is_folder]
            inside = ((*folder, name) for name, is_folder in entries.items() if is_folder)
            waiting += [each for each in inside if self._enters(each, seen)]

    def _enters(self, folder: _Parts, seen: set[tuple[int, int]]) -> bool:
        """Whether to look into a folder; through a link only if it is packed, and only once."""
        # A version directory is nearly never left out, and its files are asked for one by one if
        # need be.
        if len(folder) > MAX_DEPTH or (
            not folder[-1].isdigit() and not self._is_packed((*folder, ""))
        ):
            return False
        path = os.path.join(self._folder.directory, *folder)
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                if not self._follows(path):
                    return False
                status = os.stat(path)
        except (OSError, ValueError):
            return False
        is_new = (status.st_dev, status.st_ino) not in seen
        seen.add((status.st_dev, status.st_ino))
        return is_new

    def _packed(self, found: list[_Parts]) -> tuple[str, ...]:
        return tuple(sorted(self._path(parts) for parts in found if self._is_packed(parts)))

    def _is_packed(self, parts: _Parts) -> bool:
        return not self._leaves_out(self._path(parts))

    def _path(self, parts: _Parts) -> str:
        return self._folder.relative(*parts)


def is_composed(name: str) -> bool:
    """Whether a name is in the Unicode form NFC."""
    return name.isascii() or unicodedata.is_normalized("NFC", name)


def same_on_some_disks(names: Iterable[str]) -> list[list[str]]:
    """Return groups of names that differ only in case or Unicode form."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(unicodedata.normalize("NFC", name).casefold(), []).append(name)
    return [sorted(group) for group in groups.values() if len(group) > 1]


def _has_windows_lines(head: bytes) -> bool:
    """Whether the first line of a text ends with CR LF."""
    end = max(head.find(b"\n") - 1, 0)
    return head[end : end + 2] == b"\r\n"
