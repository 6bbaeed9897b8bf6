"""The folder of a command's output, and folders for the life of the process."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.drafts import remove_abandoned, temporary_folder
from constructs_triton_core.untrusted.regular_files import explained

__all__ = ["output_folder", "scratch_directory"]


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


def scratch_directory() -> Path:
    """Create a folder that is deleted when the process ends."""
    return Path(tempfile.mkdtemp(dir=_scratch_root()))


@cache
def _scratch_root() -> Path:
    until_the_end = ExitStack()
    root = until_the_end.enter_context(temporary_folder())
    atexit.register(until_the_end.close)
    return root
