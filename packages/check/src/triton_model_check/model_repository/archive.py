"""Writes a deterministic ``.tar.gz`` with several threads in constant memory.

The sizes of all members are known, so the layout of the tar stream is known before a byte is read.
The stream is cut into blocks of one fixed length. Each block is read and compressed on its own and
ends on a byte boundary (a sync flush). The blocks in order are one gzip member, the same for any
number of threads.
"""

from __future__ import annotations

import os
import struct
import tarfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from blake3 import blake3
from isal import isal_zlib

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_repository.content_digest import ContentDigest
from triton_model_check.model_repository.members import Member, changed_error, open_member

__all__ = ["count_workers"]

BLOCK_BYTES = 1 << 20
COMPRESSION_LEVELS = range(4)
DEFAULT_COMPRESSION_LEVEL = 2
MAX_WORKERS = 8  # each holds two blocks, so this limits the memory on large machines

# No file name, no time, unknown system.
_GZIP_HEADER = struct.pack("<BBBBIBB", 0x1F, 0x8B, 8, 0, 0, 0, 0xFF)
_LAST_BLOCK = b"\x03\x00"  # an empty final deflate block
_RAW_DEFLATE = -15
_MEMORY_LEVEL = 9  # the largest buffers, a few hundred kilobytes: igzip is then 5 percent faster


class Piece(NamedTuple):
    """A part of the tar stream: ``literal`` bytes,
    or ``length`` bytes of ``member`` from ``offset``.
    """

    length: int
    literal: bytes = b""
    member: Member | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the stream, read and compressed."""

    pieces: tuple[Piece, ...]
    content: bytes
    deflated: tuple[bytes, bytes]
    crc: int


def count_workers() -> int:
    """Return how many threads to use: the cores that this process may run on, at most eight."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(cores, MAX_WORKERS)


def write_archive(
    members: Iterable[Member],
    output: BinaryIO,
    *,
    compression_level: int = DEFAULT_COMPRESSION_LEVEL,
    workers: int | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> dict[str, ContentDigest]:
    """Write ``members`` to ``output`` as ``.tar.gz``; return the digests of their content by member
    name.

    ``compression_level`` 0 stores without compression; 1 to 3 are igzip's levels. ``on_bytes`` is
    called with the number of bytes of each finished block. The result depends only on the members,
    the level and the processor family.
    """
    if compression_level not in COMPRESSION_LEVELS:
        raise InvalidValueError(
            "compression_level: must be 0 (store) to 3, "
            f"got {compression_level}; use 2, the default"
        )
    hasher, crc, length = _ContentHasher(), 0, 0
    output.write(_GZIP_HEADER)
    for block in _finished_blocks(members, compression_level, workers or count_workers()):
        output.writelines(block.deflated)
        crc = isal_zlib.crc32_combine(crc, block.crc, len(block.content))
        length += len(block.content)
        hasher.add(block)
        if on_bytes is not None:
            on_bytes(len(block.content))
    output.write(_LAST_BLOCK + struct.pack("<II", crc, length & 0xFFFFFFFF))
    return hasher.digests


class _ContentHasher:
    """Hashes each file from the blocks as they are written, so no file is read twice."""

    def __init__(self) -> None:
        self.digests: dict[str, ContentDigest] = {}
        self._running = blake3()

    def add(self, block: Block) -> None:
        start, view = 0, memoryview(block.content)
        for piece in block.pieces:
            if piece.member is not None:
                self._add_content(piece.member, piece.offset, view[start : start + piece.length])
            start += piece.length

    def _add_content(self, member: Member, offset: int, content: memoryview) -> None:
        if offset == 0:
            self._running = blake3()
        self._running.update(content)
        if offset + len(content) == member.size:
            self.digests[member.name] = self._running.digest()


def _finished_blocks(members: Iterable[Member], level: int, workers: int) -> Iterator[Block]:
    """Compress the members in blocks, several at a time, and yield them in order."""
    pending: deque[Future[Block]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for pieces in _cut(_stream(members)):
                pending.append(pool.submit(_make_block, pieces, level))
                if len(pending) > 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _make_block(pieces: tuple[Piece, ...], level: int) -> Block:
    content = b"".join(map(_read, pieces))
    return Block(pieces, content, _deflate(content, level), isal_zlib.crc32(content))


def _deflate(content: bytes, level: int) -> tuple[bytes, bytes]:
    library = isal_zlib if level else zlib  # igzip's level 0 compresses
    compressor = library.compressobj(level, wbits=_RAW_DEFLATE, memLevel=_MEMORY_LEVEL)
    return compressor.compress(content), compressor.flush(zlib.Z_SYNC_FLUSH)


def _read(piece: Piece) -> bytes:
    """Return the bytes of a piece; raises if the file has changed."""
    if piece.member is None:
        return piece.literal
    with open_member(piece.member) as file:
        file.seek(piece.offset)
        content = file.read(piece.length) or b""
        while len(content) < piece.length and (more := file.read(piece.length - len(content))):
            content += more
    if len(content) != piece.length:
        raise changed_error(piece.member)
    return content


def _cut(stream: Iterable[Piece]) -> Iterator[tuple[Piece, ...]]:
    """Group the stream's pieces into blocks; split a piece where a block ends."""
    block: list[Piece] = []
    room = BLOCK_BYTES
    for whole in stream:
        piece = whole
        while piece.length > room:
            head, piece = _split(piece, room)
            yield (*block, head)
            block, room = [], BLOCK_BYTES
        block.append(piece)
        room -= piece.length
    yield tuple(block)


def _split(piece: Piece, length: int) -> tuple[Piece, Piece]:
    rest = piece.length - length
    head = piece._replace(length=length, literal=piece.literal[:length])
    return head, piece._replace(
        length=rest, literal=piece.literal[length:], offset=piece.offset + length
    )


def _stream(members: Iterable[Member]) -> Iterator[Piece]:
    """Yield the pieces of a tar archive, with its end."""
    total = 0
    for member in members:
        for piece in _member_pieces(member):
            total += piece.length
            yield piece
    end = bytes(2 * tarfile.BLOCKSIZE)
    end += bytes(-(total + len(end)) % tarfile.RECORDSIZE)
    yield Piece(len(end), end)


def _member_pieces(member: Member) -> Iterator[Piece]:
    header = _header(member)
    padding = bytes(-member.size % tarfile.BLOCKSIZE)
    yield Piece(len(header), header)
    if not member.is_directory:
        yield Piece(member.size, member=member)
    yield Piece(len(padding), padding)


def stream_size(members: Iterable[Member]) -> int:
    """Return the size of the tar stream of ``members``, in bytes."""
    return sum(piece.length for piece in _stream(members))


def _header(member: Member) -> bytes:
    info = tarfile.TarInfo(member.name)
    info.type = tarfile.DIRTYPE if member.is_directory else tarfile.REGTYPE
    info.mode = member.mode
    info.size = member.size
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
