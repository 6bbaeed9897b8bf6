"""Writes files, in the only way in which this project writes where other people may have written.

A repository that was cloned can contain any name as a link, and an archive that was unpacked any
name as a named pipe. So a file is written under a new name that no program can guess, which is
opened exclusively and never through a link. When it is complete, it is renamed. Renaming replaces
a link instead of following it, and it is refused here for everything but a regular file: what the
user would lose, or what the file would become, is better said than guessed.

Standard library only: it is below everything that writes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from constructs_triton_core.untrusted.drafts import is_draft, new_draft, remove_abandoned_files
from constructs_triton_core.untrusted.regular_files import file_type

__all__ = ["new_folder", "open_to_append", "write_whole", "written_whole"]

_COMMON = (
    os.O_WRONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
_PERMISSIONS = 0o777
_DISK_ERRORS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG))
#: Only the system creates names in these folders, so no repository can have put them there.
_DEVICE_FOLDERS = frozenset(("/dev", "/dev/fd", "/dev/pts", "/proc/self/fd"))


def write_whole(
    path: Path, content: str | bytes, *, is_private: bool = False, is_synced: bool = False
) -> None:
    """Write a file as a whole or not at all; text is written as UTF-8, its line ends as they are.

    Args:
        path: The file; one that exists is replaced and keeps its mode. A device of the system, such
            as ``/dev/stdout``, is written in place.
        content: What the file contains afterwards.
        is_private: Whether only this user may read the file, whatever the umask and its old mode.
        is_synced: Whether it must survive a power failure from now on.

    Raises:
        OSError: it cannot be written, or something else than a regular file has this name.
    """
    with written_whole(path, is_private=is_private, is_synced=is_synced) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def written_whole(
    path: Path, *, is_private: bool = False, is_synced: bool = False
) -> Iterator[BinaryIO]:
    """Open a file that gets its name when the block ends without an error; else it is deleted.

    Args:
        path: As for :func:`write_whole`.
        is_private: As for :func:`write_whole`.
        is_synced: As for :func:`write_whole`.

    Raises:
        OSError: as :func:`write_whole`.
    """
    if _is_device(path):
        # Standard output may be a file that the shell has opened and that has content.
        flags = (_COMMON & ~getattr(os, "O_NOFOLLOW", 0)) | os.O_APPEND
        with open(os.open(path, flags), "wb") as file:  # noqa: PTH123 - a descriptor
            yield file
        return

    mode = _mode_of_file(path)
    with suppress(OSError):  # a folder that cannot be listed may still be written
        remove_abandoned_files(path.parent)
    # No other user may read it while it has not the mode of the file that it replaces.
    first_mode = 0o666 if mode is None and not is_private else 0o600
    try:
        with new_draft(path.parent, _COMMON, first_mode) as (draft, descriptor):
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
                yield file
                file.flush()
                if mode is not None and not is_private and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
                if is_synced:
                    os.fsync(file.fileno())
            _mode_of_file(path)  # it may have become something else while the draft was written
            draft.replace(path)
    except OSError as error:
        is_nameless = error.filename is None and error.errno in _DISK_ERRORS
        if is_nameless or is_draft(error.filename):
            # The user knows this name, not that of the draft. A write to a descriptor has none.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def open_to_append(path: Path) -> BinaryIO:
    """Open a file that :func:`write_whole` has just written, to write more at its end.

    Raises:
        OSError: it does not exist, is not a regular file, or cannot be written.
    """
    _mode_of_file(path)
    return open(os.open(path, _COMMON | os.O_APPEND), "ab")  # noqa: PTH123 - a descriptor


def new_folder(path: Path) -> Path:
    """Create a folder with its parents, unless it exists; return it.

    Raises:
        OSError: it cannot be created, or a link has this name.
    """
    path.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, "a link instead of a folder", os.fspath(path))
    return path


def _is_device(path: Path) -> bool:
    place = os.path.abspath(path)  # noqa: PTH100 - resolve() follows the links of /dev
    return os.path.dirname(place) in _DEVICE_FOLDERS and path.exists()  # noqa: PTH120 - a string


def _mode_of_file(path: Path) -> int | None:
    """Return the permissions of the file at a path, or ``None`` if nothing is there.

    Raises:
        OSError: something else than a regular file has this name.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        return mode & _PERMISSIONS
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    found = "a link" if stat.S_ISLNK(mode) else file_type(mode)
    raise OSError(errno.EINVAL, f"{found} instead of a file", os.fspath(path))
