"""Copies files: by reference where the file system can share blocks, otherwise once, byte by byte.

A copy never shares its content with the original: a hard link or a symbolic link would, and an edit
of the original would then change bytes that were already named after their digest.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from constructs_triton_core.untrusted.regular_files import open_regular

__all__ = ["copy_file", "share_blocks"]

_FICLONE = 0x40049409  # linux/fs.h: share the blocks of two files until one of them is written
_CHUNK_BYTES = 1 << 18


def copy_file(source: Path, destination: Path) -> None:
    """Copy the content of a file to ``destination``, which does not exist yet.

    Raises:
        OSError: a file cannot be read or written.
    """
    with open_regular(source) as original, destination.open("xb") as copy:
        if not share_blocks(original.fileno(), copy.fileno()):
            shutil.copyfileobj(original, copy, _CHUNK_BYTES)


def share_blocks(source: int, destination: int) -> bool:
    """Let a new file have the blocks of another one, both by descriptor;
    return whether that was possible.
    """
    try:
        import fcntl
    except ImportError:
        return False
    with suppress(OSError):  # another file system, or one that cannot share blocks
        fcntl.ioctl(destination, _FICLONE, source)
        return True
    return False
