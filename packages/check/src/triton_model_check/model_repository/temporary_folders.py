"""Temporary folders: for files that are renamed when they are complete, and for the life of the
process.

The process that writes into a partial folder keeps it locked. The next run can therefore tell what
a killed run has left from what another run is still writing, and deletes it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.regular_files import explained
from constructs_triton_core.untrusted.written_files import DRAFT_PREFIX

__all__ = ["output_folder", "partial_folder", "remove_abandoned", "scratch_directory"]

_SHARE = 10
_DRAFT_SECONDS = 3600
_listed_again_at: dict[Path, float] = {}
"""When a folder may be listed again, in processor time."""


@contextmanager
def partial_folder(parent: Path) -> Iterator[Path]:
    """Create a temporary folder in ``parent``. Rename complete files out of it; the rest is
    deleted.

    Raises:
        OSError: ``parent`` cannot be written.
    """
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def output_folder(directory: Path, problem: str) -> Iterator[None]:
    """Create a folder if it does not exist, and delete what killed runs have left in it.

    Raises:
        ArchiveError: the folder or something in it cannot be written. The message has the problem.
    """
    fix = "choose a folder that you may write, on a disk with enough space"
    with explained(directory, problem, fix, ArchiveError):
        directory.mkdir(parents=True, exist_ok=True)
        remove_abandoned(directory)
        yield


def remove_abandoned(directory: Path) -> None:
    """Delete what killed runs have left in ``directory``.

    It takes at most a tenth of the time of the process, so that packing into one folder takes
    linear time: a folder that was just listed is not listed again.
    """
    begun = time.process_time()
    if begun < _listed_again_at.get(directory, 0):
        return
    with os.scandir(directory) as entries:
        found = [Path(entry.path) for entry in entries if entry.name.startswith(DRAFT_PREFIX)]
    now = time.process_time()
    _listed_again_at[directory] = now + _SHARE * (now - begun)
    for folder in found:
        with suppress(OSError):
            if folder.is_file():
                _remove_old(folder)
                continue
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                if _lock(descriptor, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _remove_old(file: Path) -> None:
    """Delete the draft of a small file, which is not locked: it is written in a moment."""
    if file.stat().st_mtime < time.time() - _DRAFT_SECONDS:
        file.unlink()


def _locked_folder(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=parent))
        with suppress(FileNotFoundError):  # another run may delete it before it is locked
            descriptor = os.open(folder, os.O_RDONLY)
            _lock(descriptor, wait=True)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # locked by another process, or a file system without locks
        return False
    return True


def scratch_directory() -> Path:
    """Create a folder that is deleted when the process ends."""
    return Path(tempfile.mkdtemp(dir=_scratch_root()))


@cache
def _scratch_root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="constructs-triton-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root
