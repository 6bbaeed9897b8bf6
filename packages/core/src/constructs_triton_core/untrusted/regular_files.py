"""Reads files that other people wrote: never waits for a named pipe, never reads a device."""

from __future__ import annotations

import csv
import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError

__all__ = [
    "csv_text",
    "explained",
    "file_type",
    "open_regular",
    "read_json",
    "read_regular",
]

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
MAX_TEXT_BYTES = 64 << 20
"""The largest text file that is read where the caller names no other bound."""

#: What a cell begins with that Excel and LibreOffice evaluate.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")

_TYPES = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def file_type(mode: int) -> str | None:
    """Return ``"a named pipe"``, ``"a device"`` or ``"a socket"``;
    ``None`` for files and folders.
    """
    return _TYPES.get(stat.S_IFMT(mode))


def open_regular(path: str | os.PathLike[str]) -> io.FileIO:
    """Open a file for reading without a buffer; follows links.

    Raises:
        OSError: it cannot be opened, or it is a folder, a named pipe, a device or a socket.
    """
    # Opening a named pipe would wait for a writer; O_NONBLOCK makes it return immediately.
    descriptor = os.open(path, _FLAGS)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"{file_type(mode)} instead of a file", os.fspath(path))
        return io.FileIO(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | os.PathLike[str], max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: as :func:`open_regular`, or it is larger than ``max_bytes`` (default: 64 MiB).
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > max_bytes:
            raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", os.fspath(path))
        return file.readall()


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value in a JSON file.

    Raises:
        OSError: as :func:`read_regular`.
        ValueError: as :func:`~constructs_triton_core.bounded_json.parse_bounded_json`.
    """
    return parse_bounded_json(read_regular(path))


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as the text of a CSV file.

    A string that a spreadsheet would run as a formula begins with an apostrophe, as OWASP advises
    ("CSV Injection").
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([_without_formula(cell) for cell in row])
    return text.getvalue()


def _without_formula(cell: object) -> object:
    is_formula = isinstance(cell, str) and cell.startswith(_FORMULAS) and not _is_number(cell)
    return f"'{cell}" if is_formula else cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@contextmanager
def explained(
    path: Path, problem: str, fix: str, error_type: type[ConstructsTritonError] = InvalidValueError
) -> Iterator[None]:
    """Raise an error of a file with the path, the problem, the reason and the fix.

    Raises:
        ConstructsTritonError: one of ``error_type``, for an ``OSError`` in the block.
    """
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise error_type(f"{path}: {problem} ({reason}); {fix}") from error
