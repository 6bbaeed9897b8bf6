"""Reads files of unknown origin: only regular files, and within bounds on their size."""

from __future__ import annotations

import errno
import io
import math
import os
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_ARRAY_BYTES", "ArrayFolder", "read_array", "read_file"]

MAX_ARRAY_BYTES = 1 << 30
"""The largest request of any endpoint: that of InvokeEndpointAsync."""
_MAX_BYTES = 64 << 20
_LONGEST_HEADER = 10_000


def read_file(path: Path, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than ``max_bytes`` (default: 64
            MiB).
    """
    with _opened(path, max_bytes) as file:
        return file.read()


def read_array(path: Path, max_bytes: int = MAX_ARRAY_BYTES) -> NDArray[Any]:
    """Return the array of a ``.npy`` file.

    Raises:
        OSError: as :func:`read_file`; the default of ``max_bytes`` is 1 GiB.
        ValueError: it is no ``.npy`` file, contains Python objects, or has another size than its
            header says.
    """
    with _opened(path, max_bytes) as file:
        shape, is_fortran, dtype = _header(file)
        if dtype.hasobject or dtype.itemsize == 0:
            raise ValueError("its values are neither numbers nor strings")
        count = math.prod(shape)
        if count * dtype.itemsize != os.fstat(file.fileno()).st_size - file.tell():
            raise ValueError("its size is not that of the shape in its header")
        array = np.fromfile(file, dtype, count)
    return array.reshape(shape[::-1]).transpose() if is_fortran else array.reshape(shape)


@dataclass(slots=True)
class ArrayFolder:
    """The ``.npy`` files below a folder, of which at most ``bytes_left`` are read together."""

    folder: Path
    bytes_left: int = MAX_ARRAY_BYTES

    def read(self, name: str) -> NDArray[Any]:
        """Return the array of a file.

        Raises:
            OSError: as :func:`read_array`.
            ValueError: as :func:`read_array`, or the file is not below the folder.
        """
        file = self.folder / name
        if not _real(file).is_relative_to(_real(self.folder)):
            raise ValueError(f"it is not below {self.folder}")
        array = read_array(file, self.bytes_left)
        self.bytes_left -= array.nbytes
        return array


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve raises RuntimeError for links in a circle


def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and dtype of an ``.npy`` file."""
    formats: Any = np.lib.format
    try:
        is_first = formats.read_magic(file) == (1, 0)
        read = formats.read_array_header_1_0 if is_first else formats.read_array_header_2_0
        with warnings.catch_warnings():
            # A terminal would show the warning about headers of Python 2.
            warnings.simplefilter("ignore")
            shape, is_fortran, dtype = read(file, _LONGEST_HEADER)
    except Exception as error:  # NumPy evaluates the header, which raises errors of many types
        raise ValueError(f"it is no .npy file that can be read: {error}") from None
    return shape, is_fortran, dtype


def _opened(path: Path, max_bytes: int) -> BinaryIO:
    """Open a regular file of at most this size."""
    # Opening a named pipe would wait for a writer.
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= max_bytes:
        return io.BufferedReader(io.FileIO(descriptor))
    os.close(descriptor)
    is_large = stat.S_ISREG(status.st_mode)
    reason = f"it is larger than {max_bytes} bytes" if is_large else "it is not a regular file"
    raise OSError(errno.EINVAL, reason, os.fspath(path))
