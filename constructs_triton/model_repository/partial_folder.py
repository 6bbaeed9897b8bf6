"""Files are written beside their place and renamed into it when whole.

That happens in a small folder, which its writer keeps locked while it lives: so what a killed run left
behind can be told from what another run is writing, and is removed by the next run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["partial_folder", "remove_abandoned"]

_PREFIX = ".constructs-triton-"


@contextmanager
def partial_folder(parent: Path) -> Iterator[Path]:
    """A folder in ``parent`` for what is not whole yet: rename out of it what is, the rest is removed.

    Raises:
        OSError: ``parent`` cannot be written to.
    """
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned(directory: Path) -> None:
    """Remove what killed runs left in ``directory``."""
    for folder in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                if _lock(descriptor, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):  # another run may remove it before it is locked
            descriptor = os.open(folder, os.O_RDONLY)
            _lock(descriptor, wait=True)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> bool:
    try:
        import fcntl  # noqa: PLC0415 - Windows has none: there, nothing counts as abandoned
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held by another, or a file system without locks
        return False
    return True
