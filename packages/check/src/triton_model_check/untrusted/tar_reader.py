"""Reads the members of a ``.tar.gz`` from an untrusted source, as a stream and with a bounded
effort.

The standard library's ``tarfile`` reads headers of any size, never ends at some sparse members, and
raises errors of many types for damaged headers. This reader knows the formats that tar programs
write (v7, ustar, GNU and PAX) and rejects what no model archive contains.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from isal import igzip, isal_zlib

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_core.untrusted.budget import OverBudgetError
from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.untrusted.budget import UnpackBudget
from triton_model_check.untrusted.limits import UNPACK_BYTES_VARIABLE

__all__ = ["ArchiveMember", "UnpackLimits", "read_members"]


_BLOCK_BYTES, _CHUNK_BYTES = 512, 1 << 20
_GZIP = b"\x1f\x8b"
_MAX_HEADER_BYTES = 1 << 20  # of a long name or of PAX records
_REGULAR, _DIRECTORY = b"0\0" + b"7", b"5"
_LONG_NAME = b"L"
_LONG_LINK = b"K"
_PAX = b"x"
_GLOBAL_PAX = b"g"
_TYPES = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a named pipe",
}
_PAX_RECORD = re.compile(rb"([1-9][0-9]{0,6}) ([^=\0]{1,200})=")
_DECIMAL = re.compile(rb"[0-9]{1,19}")
_DEFLATE_ERROR = cast("type[Exception]", isal_zlib.error)  # isal's stub declares an instance


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Bounds on what an archive may contain.

    ``max_bytes``
        The size of all members. Default: the environment variable
        ``CONSTRUCTS_TRITON_UNPACK_BYTES``, or 1 TiB.
    ``max_members``
        The number of members. Default: 200,000.
    ``max_ratio``
        How many times larger than the archive its content may be, beyond the first GiB. Default:
        200. Weights compress by less than 10 times; only a file of zeros reaches 1,000.
    ``budget``
        What it shares with other archives. Default: nothing.
    """

    max_bytes: int = 1 << 40
    max_members: int = 200_000
    max_ratio: int = 200
    budget: UnpackBudget | None = None

    @classmethod
    def from_environment(cls) -> UnpackLimits:
        """Return the default limits.

        Raises:
            InvalidValueError: the environment variable is not a whole number of bytes.
        """
        given = os.environ.get(UNPACK_BYTES_VARIABLE, "").strip()
        if not given:
            return cls()
        if not (given.isascii() and given.isdecimal() and len(given) < 20):
            raise InvalidValueError(
                f"{UNPACK_BYTES_VARIABLE}: must be a whole number of bytes, got {given[:40]!r}; "
                "set 107374182400 for 100 GiB"
            )
        return cls(max_bytes=int(given), max_ratio=1 << 20)

    def bytes_for(self, archive_bytes: int) -> int:
        """Return how many bytes the content of an archive of this size may have."""
        return min(self.max_bytes, max(1 << 30, archive_bytes * self.max_ratio))


class ArchiveMember(NamedTuple):
    """A member: its name as written, and what is wrong with its type, or ``None``.

    ``chunks`` reads the content; it must be used before the next member is asked for, and raises an
    ``ArchiveError`` as :func:`read_members` does.
    """

    name: str
    mode: int
    size: int
    is_directory: bool
    problem: str | None
    chunks: Callable[[], Iterator[bytes]]


def read_members(
    archive: Path, limits: UnpackLimits | None = None, *, accept_plain: bool = False
) -> Iterator[ArchiveMember]:
    """Yield the members of a ``.tar.gz`` in constant memory, and verify its checksum at the end.

    ``limits`` are by default those of the environment. ``accept_plain`` also accepts a ``.tar``
    without compression.

    Raises:
        ArchiveError: it cannot be read, is damaged, or exceeds ``limits``.
    """
    allowed = limits or UnpackLimits.from_environment()
    with (
        _errors_of(archive),
        open_regular(archive) as file,
        _unzipped(file, accept_plain) as content,
    ):
        stream = _Stream(
            content, allowed.bytes_for(os.fstat(file.fileno()).st_size), allowed.budget
        )
        for member in _Reader(stream, allowed.max_members).members():
            if allowed.budget is not None:
                allowed.budget.spend(members=1)
            yield member._replace(chunks=partial(_content, archive, member))


def _content(archive: Path, member: ArchiveMember) -> Iterator[bytes]:
    with _errors_of(archive):
        yield from member.chunks()


@contextmanager
def _errors_of(archive: Path) -> Iterator[None]:
    """Turn errors of reading an archive into ``ArchiveError``."""
    try:
        yield
    except (_LimitError, OverBudgetError) as error:
        raise ArchiveError(f"{archive}: {error}") from error
    except (OSError, EOFError, _FormatError, _DEFLATE_ERROR) as error:
        raise ArchiveError(
            f"{archive}: cannot be read as .tar.gz ({error}); {_fix_of(archive)}"
        ) from error


def _fix_of(archive: Path) -> str:
    """What to do about a file that is no archive: its name may say that it is none."""
    if archive.name.endswith((".tar.gz", ".tgz")):
        return "create it again"
    return (
        "pass the folder of a model repository or a .tar.gz; `constructs-triton model new` makes "
        "a model of a model file"
    )


def _unzipped(file: BinaryIO, accept_plain: bool) -> BinaryIO:
    if accept_plain:
        is_gzip = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        if not is_gzip:
            return file
    # isal's stub gives it no signature, and it reads like any binary file.
    return cast("BinaryIO", igzip.IGzipFile(fileobj=file))  # type: ignore[no-untyped-call]


class _FormatError(Exception):
    """The content is not a tar stream."""


class _LimitError(Exception):
    """The content exceeds a limit; the message contains the fix."""


class _Stream:
    """The unpacked bytes, of which at most ``max_bytes`` may be read."""

    def __init__(self, content: BinaryIO, max_bytes: int, budget: UnpackBudget | None) -> None:
        self._content, self._budget = content, budget
        self._max_bytes = self._left = max_bytes

    def chunk(self, length: int) -> bytes:
        """Read up to ``length`` bytes and up to one MiB; nothing at the end."""
        data: bytes = self._content.read(min(length, _CHUNK_BYTES))
        self._left -= len(data)
        if self._budget is not None:
            self._budget.spend(size=len(data))
        if self._left < 0:
            raise _LimitError(
                f"unpacks to more than {self._max_bytes} bytes, which is suspicious for its size; "
                f"if it is yours, set {UNPACK_BYTES_VARIABLE} to the number of bytes to allow"
            )
        return data

    def chunks(self, length: int) -> Iterator[bytes]:
        """Read exactly ``length`` bytes."""
        while length:
            data = self.chunk(length)
            if not data:
                raise EOFError("it ends in the middle of a member")
            length -= len(data)
            yield data

    def read(self, length: int) -> bytes:
        """Read exactly ``length`` bytes in one piece, or nothing at the end."""
        first = self.chunk(length)
        return first and b"".join((first, *self.chunks(length - len(first))))


class _Header(NamedTuple):
    name: bytes
    mode: int
    size: int
    file_type: bytes


class _Reader:
    """Reads headers; long names and PAX records apply to the member that follows."""

    def __init__(self, stream: _Stream, max_members: int) -> None:
        self._stream = stream
        self._max_members = max_members
        self._always: dict[bytes, bytes] = {}
        self._unread = 0
        self._has_begun = False

    def members(self) -> Iterator[ArchiveMember]:
        """Yield the members of the archive; each must be read before the next one."""
        count = 0
        while (header := self._next()) is not None:
            count += 1
            if count > self._max_members:
                raise _LimitError(
                    f"has more than {self._max_members} members; put fewer files into it"
                )
            yield self._member(*header)
            self._skip()
        while self._stream.chunk(_CHUNK_BYTES):
            pass  # to the end of the gzip stream, where its checksum is

    def _next(self) -> tuple[_Header, dict[bytes, bytes]] | None:
        """Return the header of the next member with its PAX records, or ``None`` at the end."""
        records: dict[bytes, bytes] = {}
        for _ in range(8):  # a member has at most one header of each type before it
            block = self._stream.read(_BLOCK_BYTES)
            if not block and not self._has_begun:
                raise _FormatError("it is empty")
            self._has_begun = True
            if not block or not block.strip(b"\0"):
                return None
            header = _parse(block)
            if header.file_type == _LONG_NAME:
                records[b"path"] = self._payload(header).partition(b"\0")[0]
            elif header.file_type == _PAX:
                records |= _pax_records(self._payload(header))
            elif header.file_type == _GLOBAL_PAX:
                self._always |= _pax_records(self._payload(header))
            elif header.file_type == _LONG_LINK:
                self._payload(header)
            else:
                return header, {**self._always, **records}
        raise _FormatError("a member has too many headers")

    def _payload(self, header: _Header) -> bytes:
        if header.size > _MAX_HEADER_BYTES:
            raise _FormatError("a header is larger than 1 MiB")
        content = self._stream.read(header.size) if header.size else b""
        self._unread = -header.size % _BLOCK_BYTES
        self._skip()
        return content

    def _skip(self) -> None:
        unread, self._unread = self._unread, 0
        for _ in self._stream.chunks(unread):
            pass

    def _member(self, header: _Header, records: dict[bytes, bytes]) -> ArchiveMember:
        """Return the member that a header describes."""
        name = records.get(b"path", header.name).decode("utf-8", "surrogateescape")
        is_regular = header.file_type in _REGULAR
        is_directory = header.file_type == _DIRECTORY or (is_regular and header.name.endswith(b"/"))
        size = _pax_size(records[b"size"]) if b"size" in records else header.size
        if header.file_type == b"S":  # what follows has a form of its own
            raise _LimitError(f"member {name[:300]!r} is a sparse file; run tar without --sparse")
        if header.file_type in _TYPES:
            size = 0  # tar programs write the size of a hard link's target, which does not follow
        problem = _problem(header.file_type, is_regular or is_directory, records)
        self._unread = size + -size % _BLOCK_BYTES

        def chunks() -> Iterator[bytes]:
            for data in self._stream.chunks(size):
                self._unread -= len(data)
                yield data

        return ArchiveMember(name, header.mode, size, is_directory, problem, chunks)


def _problem(file_type: bytes, is_supported: bool, records: dict[bytes, bytes]) -> str | None:
    if any(key.startswith(b"GNU.sparse.") for key in records):
        return "is a sparse file, which `tar --sparse` writes"
    return None if is_supported else f"is {_TYPES.get(file_type, 'of an unknown type')}"


def _parse(block: bytes) -> _Header:
    """Return the fields of a header, whose checksum must be right."""
    expected = _number(block[148:156], "checksum")
    if expected != sum(block[:148]) + sum(block[156:]) + 8 * ord(" "):
        raise _FormatError("a header has a wrong checksum")
    name = block[:100].partition(b"\0")[0]
    prefix = block[345:500].partition(b"\0")[0]
    if block[257:263] == b"ustar\0" and prefix:
        name = prefix + b"/" + name
    _number(block[136:148], "modification time")
    return _Header(
        name, _number(block[100:108], "mode"), _number(block[124:136], "size"), block[156:157]
    )


def _number(field: bytes, what: str) -> int:
    """Read an octal number, or one in GNU's binary form, up to 63 bits."""
    if field[0] & 0x80:
        value = int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
        if value >= 1 << 63:
            raise _FormatError(f"a header has a {what} that is negative or too large")
        return value
    digits = field.partition(b"\0")[0].strip(b" ") or b"0"
    if digits.strip(b"01234567"):
        raise _FormatError(f"a header has an invalid {what}")
    return int(digits, 8)


def _pax_records(content: bytes) -> dict[bytes, bytes]:
    """Read records of the form ``"<length> <key>=<value>\\n"``."""
    records, start = {}, 0
    while start < len(content) and content[start] != 0:
        match = _PAX_RECORD.match(content, start)
        end = start + int(match[1]) if match else 0
        if match is None or not match.end() < end <= len(content) or content[end - 1] != ord("\n"):
            raise _FormatError("an extended header has an invalid record")
        records[match[2]] = content[match.end() : end - 1]
        start = end
    _check_times(records)
    return records


def _check_times(records: dict[bytes, bytes]) -> None:
    for key in (b"mtime", b"atime", b"ctime"):
        value = records.get(key, b"0")
        if not re.fullmatch(rb"[0-9]{1,11}(\.[0-9]*)?", value):
            raise _FormatError(f"an extended header has an invalid {key.decode()}")


def _pax_size(value: bytes) -> int:
    if not _DECIMAL.fullmatch(value) or int(value) >= 1 << 63:
        raise _FormatError("an extended header has an invalid size")
    return int(value)
