"""Files and folders that are not complete, of which a killed command leaves nothing for long.

The process that writes a draft keeps it locked. The next command that writes into the same folder
can therefore tell what a killed one has left from what another one is still writing, and deletes
it. The age of a draft decides nothing, because clocks jump. Where a file system has no locks, or
the system has none for files, drafts of killed commands stay.

Standard library only: it is below everything that writes.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = [
    "DRAFT_PREFIX",
    "is_draft",
    "is_taken",
    "lock",
    "new_draft",
    "partial_folder",
    "place_folder",
    "place_of_draft",
    "remove_abandoned",
    "remove_abandoned_files",
    "sole_writer",
    "temporary_folder",
]

DRAFT_PREFIX = ".constructs-triton-"
"""Beginning of the names of files and folders that are not complete."""

_FILE_NAME = re.compile(re.escape(DRAFT_PREFIX) + "[0-9a-f]{16}")
_SHARE = 10
_listed_again_at: dict[Path, float] = {}
"""When a folder may be listed again, in processor time."""
# Nothing that another user may have put there is followed, and no named pipe is waited for.
_TO_LOCK = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def new_draft(folder: Path, flags: int, mode: int) -> Iterator[tuple[Path, int]]:
    """Create a file under a new name, yield its path and its descriptor, and delete it on an error.

    It is locked until the end of the block, in which the caller closes the descriptor and renames
    the file.

    Args:
        folder: The folder.
        flags: How it is opened, besides that it must not exist.
        mode: Its permissions before the umask.

    Raises:
        OSError: it cannot be created.
    """
    path, descriptor, kept = _locked_file(folder, flags, mode)
    try:
        yield path, descriptor
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        if kept is not None:
            os.close(kept)


def is_draft(name: object) -> bool:
    """Return whether a name, such as that in an error, is that of a file of :func:`new_draft`."""
    if not isinstance(name, str | os.PathLike):
        return False
    return _FILE_NAME.fullmatch(Path(name).name) is not None


@contextmanager
def partial_folder(parent: Path) -> Iterator[Path]:
    """Create a temporary folder in ``parent``. Rename complete files out of it; the rest is
    deleted.

    What killed commands have left in ``parent`` is deleted first.

    Raises:
        OSError: ``parent`` cannot be written.
    """
    with suppress(OSError):  # a folder that cannot be listed may still be written
        remove_abandoned(parent)
    folder, descriptor = _locked_folder(parent)
    try:
        yield folder
    finally:
        _delete_folder(folder)
        os.close(descriptor)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder among the temporary files of the system, and delete it at the end.

    Raises:
        OSError: it cannot be created.
    """
    with partial_folder(Path(tempfile.gettempdir())) as folder:
        yield folder


def place_of_draft(directory: Path) -> Path:
    """Return where to create the draft of a new folder, so that it is moved in one file system.

    That is the folder itself if it exists, because it may be where a disk is mounted, or where the
    user's shell is. Otherwise it is the nearest folder above it.
    """
    return next(each for each in (directory, *directory.absolute().parents) if each.is_dir())


def place_folder(content: Path, directory: Path) -> None:
    """Move a complete folder out of its draft to its place, which is empty or does not exist.

    Raises:
        OSError: it cannot be moved.
    """
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        content.rename(directory)
        return
    for entry in sorted(content.iterdir()):
        entry.rename(directory / entry.name)


def _locked_file(folder: Path, flags: int, mode: int) -> tuple[Path, int, int | None]:
    """Return path and descriptor of a new file, and a second descriptor, with which the lock lasts.

    Where files have no locks, there is no second one: Windows renames no file that is open.
    """
    while True:
        path = folder / f"{DRAFT_PREFIX}{secrets.token_hex(8)}"
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
        kept = os.dup(descriptor) if lock(descriptor, wait=True) else None
        if kept is None or os.fstat(descriptor).st_nlink:
            return path, descriptor, kept
        os.close(kept)  # another command has deleted the file before it was locked
        os.close(descriptor)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    while True:
        try:
            folder = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=parent))
        except OSError as error:
            # The user knows this name, not that of the draft.
            raise OSError(error.errno, error.strerror, os.fspath(parent)) from error
        with suppress(FileNotFoundError):  # another command may delete it before it is locked
            descriptor = os.open(folder, os.O_RDONLY)
            lock(descriptor, wait=True)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def _delete_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    # A copy of a read-only folder is read-only, so nothing can be deleted in it.
    with suppress(OSError):
        for inner, _, _ in os.walk(folder):
            Path(inner).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def sole_writer(folder: Path, seconds: float = 60) -> Iterator[None]:
    """Wait until no other command changes files in a folder by what they contain.

    Two commands that add to one file would otherwise both read it before one of them writes.

    Raises:
        OSError: another command, which may have been stopped, does not end within ``seconds``.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folder; for another reason, the file cannot be written
        yield
        return
    try:
        _wait_for_lock(folder, descriptor, seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(folder: Path, descriptor: int, seconds: float) -> None:
    """Lock a folder for which other commands may have a lock for a moment."""
    end = time.monotonic() + seconds
    while is_taken(descriptor):
        if time.monotonic() > end:
            reason = f"another command has been writing in this folder for {seconds:g} seconds"
            raise OSError(errno.EBUSY, reason, str(folder))
        time.sleep(0.02)


# --- what killed commands have left ---------------------------------------------------------------


def remove_abandoned(directory: Path) -> None:
    """Delete the files and folders that killed commands of this user have left in a folder.

    It takes at most a tenth of the time of the process, so that packing into one folder takes
    linear time: a folder that was just listed is not listed again.

    Raises:
        OSError: the folder cannot be listed.
    """
    for draft in _drafts_in(directory):
        _remove_if_abandoned(draft)


def remove_abandoned_files(directory: Path) -> None:
    """Delete only the files that killed commands have left, as :func:`remove_abandoned` does.

    For folders of the user, where a folder with such a name may be another one.

    Raises:
        OSError: the folder cannot be listed.
    """
    for draft in _drafts_in(directory):
        if _FILE_NAME.fullmatch(draft.name):
            _remove_if_abandoned(draft)


def _drafts_in(directory: Path) -> list[Path]:
    begun = time.process_time()
    if begun < _listed_again_at.get(directory, 0):
        return []
    with os.scandir(directory) as entries:
        found = [Path(entry.path) for entry in entries if entry.name.startswith(DRAFT_PREFIX)]
    now = time.process_time()
    _listed_again_at[directory] = now + _SHARE * (now - begun)
    return found


def _remove_if_abandoned(draft: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(draft, _TO_LOCK)
        try:
            status = os.fstat(descriptor)
            if not _is_own(status) or not lock(descriptor, wait=False):
                return
            if stat.S_ISDIR(status.st_mode):
                _delete_folder(draft)
            elif stat.S_ISREG(status.st_mode):
                draft.unlink()
        finally:
            os.close(descriptor)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def is_taken(descriptor: int) -> bool:
    """Lock an open file or folder, and return whether another process had locked it already.

    Where files have no locks, no process has.
    """
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file or folder until its descriptor is closed, which the end of a process does.

    Args:
        descriptor: The descriptor.
        wait: Whether to wait for a process that has locked it.

    Returns:
        Whether it is locked now: not if another process has locked it, nor where files have no
        locks.
    """
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
