"""What changes with any file of a folder."""

# os is several times faster than pathlib, and a thousand folders a second are wanted.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from blake3 import blake3

from constructs_triton_core.untrusted.cache_contract import SMALL_BYTES
from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.untrusted.limits import MAX_DEPTH


class FolderState(NamedTuple):
    """What tells a folder from itself after a change.

    Args:
        content: A digest of the paths, modes and links, of the content of files of at most 16 KiB,
            and of the inode, size and times of larger ones.
        times: The inode, size and times of each path, and whether they are those of a link itself.
        newest_large_ns: The last change of a file that is not in ``content``.
        newest_ns: The last change.
        is_complete: Whether every folder could be read, and every link leads to something.
    """

    content: str
    times: Mapping[tuple[str, bool], tuple[int, ...]]
    newest_large_ns: int
    newest_ns: int
    is_complete: bool

    def has_same_times(self) -> bool:
        """Whether nothing has changed since, by the times of its paths;
        a new one changes its folder.
        """
        try:
            return all(
                _times(os.stat(path, follow_symlinks=not is_link)) == times
                for (path, is_link), times in self.times.items()
            )
        except OSError:
            return False


def folder_state(
    directory: str, *, without: Collection[str] = (), reads: bool = True
) -> FolderState:
    """Return the state of a folder.

    Args:
        directory: The folder.
        without: Names of files and folders that are left out.
        reads: Whether to read files; else ``content`` is that of no file.
    """
    content = blake3(os.path.realpath(directory).encode("utf-8", "surrogateescape"))
    times: dict[tuple[str, bool], tuple[int, ...]] = {}
    newest_large, is_complete = 0, True
    for entry in _entries(directory, without):
        if entry is None:
            is_complete = False
            continue
        is_link, status = entry.is_symlink(), _status(entry)
        times[entry.path, False] = _times(status)
        if is_link:
            times[entry.path, True] = _times(entry.stat(follow_symlinks=False))
            is_complete &= not stat.S_ISLNK(status.st_mode)
        if reads:
            state, is_large = _state(entry, status)
            content.update(state)
            newest_large = (
                max(newest_large, *times[entry.path, False][-2:]) if is_large else newest_large
            )
    with suppress(OSError):  # then it is not complete
        times[directory, False] = _times(os.stat(directory))
    newest = max((changed for each in times.values() for changed in each[-2:]), default=0)
    return FolderState(content.hexdigest(), times, newest_large, newest, is_complete)


def _entries(
    directory: str, without: Collection[str], real: str = "", above: tuple[str, ...] = ()
) -> Iterator[os.DirEntry[str] | None]:
    """Yield what is below a folder, through links but each loop once;
    ``None`` for what cannot be read.
    """
    real = real or os.path.realpath(directory)
    if real in above:
        return
    try:
        if len(above) > MAX_DEPTH:
            raise OSError
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        yield None  # an error when it is read
        return
    for entry in entries:
        if entry.name not in without:
            yield entry
            if entry.is_dir():
                below = "" if entry.is_symlink() else f"{real}{os.sep}{entry.name}"
                yield from _entries(entry.path, without, below, (*above, real))


def _status(entry: os.DirEntry[str]) -> os.stat_result:
    try:
        return entry.stat()
    except OSError:  # a broken link
        return entry.stat(follow_symlinks=False)


def _state(entry: os.DirEntry[str], status: os.stat_result) -> tuple[bytes, bool]:
    """Return what changes with an entry, and whether only its times show that."""
    link = os.path.realpath(entry.path) if entry.is_symlink() else ""
    name = f"{entry.path}\0{link}\0{status.st_mode} ".encode("utf-8", "surrogateescape")
    if stat.S_ISDIR(status.st_mode):
        return name, False  # its entries follow
    if stat.S_ISREG(status.st_mode) and status.st_size <= SMALL_BYTES:
        # An error of reading is one when the file is read.
        with suppress(OSError), open_regular(entry.path) as file:
            return name + blake3(file.read(SMALL_BYTES)).digest(), False
    return name + f"{_times(status)}\0".encode(), True


def _times(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
