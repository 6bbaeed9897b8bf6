"""Copies files: by reference where the file system can share blocks, otherwise once, byte by byte.

A copy never shares its content with the original: a hard link or a symbolic link would, and an edit of the
original would then change bytes that were already named after their digest.
"""

from __future__ import annotations

import io
import os
import shutil
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.model_repository.content_digest import ContentDigest
from triton_model_check.model_repository.members import FileState, Member, changed_error, unreadable_error

__all__ = ["copy_file"]

_FICLONE = 0x40049409  # linux/fs.h: share the blocks of two files until one of them is written
_CHUNK_BYTES = 1 << 18
"""Stays in the processor's cache between hashing and writing; with 1 MiB a copy takes four times as long."""


def copy_file(source: Path, destination: Path) -> None:
    """Copy the content of a file to ``destination``, which does not exist yet.

    Raises:
        OSError: a file cannot be read or written.
    """
    with open_regular(source) as original, destination.open("xb") as copy:
        if not _share_blocks(original.fileno(), copy.fileno()):
            shutil.copyfileobj(original, copy, _CHUNK_BYTES)


def copy_member(member: Member, destination: Path) -> ContentDigest:
    """Copy the file of ``member`` to ``destination``, and return the BLAKE3 digest of the copy.

    Raises:
        ArchiveError: the file cannot be read, or it changed since it was listed.
        OSError: the destination cannot be written.
    """
    try:
        original = open_regular(member.source)
    except OSError as error:
        raise unreadable_error(member.source, error) from error
    with original, destination.open("x+b", buffering=0) as copy:
        is_shared = _share_blocks(original.fileno(), copy.fileno())
        # Hashing while copying reads a file once; a copy by reference is read for its digest only.
        digest = _hash(copy) if is_shared else _copy_and_hash(original, copy)
        if FileState.of(os.fstat(original.fileno())) != member.state:
            raise changed_error(member)
    return digest


def _share_blocks(source: int, destination: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    with suppress(OSError):  # another file system, or one that cannot share blocks
        fcntl.ioctl(destination, _FICLONE, source)
        return True
    return False


def _copy_and_hash(original: io.FileIO, copy: io.FileIO) -> ContentDigest:
    content, buffer = blake3(), memoryview(bytearray(_CHUNK_BYTES))
    while count := original.readinto(buffer):
        content.update(buffer[:count])
        rest = buffer[:count]
        while rest:
            rest = rest[copy.write(rest) :]
    return content.digest()


def _hash(file: io.FileIO) -> ContentDigest:
    content, buffer = blake3(max_threads=blake3.AUTO), memoryview(bytearray(_CHUNK_BYTES))
    while count := file.readinto(buffer):
        content.update(buffer[:count])
    return content.digest()
