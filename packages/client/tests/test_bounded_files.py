"""JSON and arrays of unknown origin: read within bounds, or refused with a reason."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_limit import cpu_limit

from constructs_triton_client.bounded_files import ArrayFolder, read_array, read_file
from constructs_triton_core.bounded_json import parse_bounded_json


def beginning(value: Any) -> str:
    """Return a short name of a test: pytest would print millions of characters."""
    return repr(value[:20])


USUAL = [
    None,
    [True, 0, -1, 2**63, 1e308, "a\nb\u20ac"],
    {"a": [{}, [], {"b": [[1.5, "]}"], {"c": ""}]}]},
]


@pytest.mark.parametrize("value", USUAL)
def test_usual_json_is_read(value: Any) -> None:
    """The value is that of Python's parser, with or without a byte order mark."""
    text = json.dumps(value)
    assert parse_bounded_json(text) == parse_bounded_json(b"\xef\xbb\xbf" + text.encode()) == value


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 50_000, "nested more than 100 deep"),
        (b"[" * 102 + b"]" * 102, "nested more than 100 deep"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "nested more than 100 deep"),
        (b"[" + b"[]," * 1_000_000 + b"[]]", "more than 1000000 values"),
        (b"{" * 1_000_001, "more than 1000000 values"),
        (b"[1e400]", "must be finite, got inf"),
        (b"[-1e400]", "must be finite, got -inf"),
        (b'{"a": NaN}', "must be finite, got nan"),
        (b"[" + b"9" * 400 + b"]", "must be finite, got 999"),
        (b"9" * 5000, "4300 digits"),
        (b'"\xff"', "invalid start byte"),
        (b'"' * (1 << 22), "Extra data"),
        (b"", "Expecting value"),
    ],
    ids=beginning,
)
def test_hostile_json_is_refused(content: bytes, reason: str) -> None:
    """The reason is that of a ValueError, whatever is wrong."""
    with cpu_limit(), pytest.raises(ValueError, match=reason):
        parse_bounded_json(content)


def test_largest_values_are_read() -> None:
    """A hundred levels, and the largest number of 64 bits."""
    assert parse_bounded_json(b"[" * 100 + b"1" + b"]" * 100)
    assert parse_bounded_json(b"1.7976931348623157e308") < math.inf


# Files.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an array of three numbers."""
    np.save(tmp_path / "a.npy", np.arange(3, dtype="<f4"))
    return tmp_path / "a.npy"


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_those_of_numpy(order: Any, tmp_path: Path) -> None:
    """Values, shape and order are kept, and the array can be written to."""
    array = np.asarray(np.arange(6, dtype="<i8").reshape(2, 3), order=order)
    np.save(tmp_path / "a.npy", array)
    found = read_array(tmp_path / "a.npy")
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable


def _header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        _header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"),
        _header("{'descr': '|O', 'fortran_order': False, 'shape': (0,), }"),
        _header("{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000,), }"),
        _header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -4), }") + bytes(16),
        _header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 70 + "), }")
        + bytes(4),
        _header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }"),
        _header("{'descr': ['a'], 'fortran_order': False, 'shape': (0,), }"),
        _header("(" * 5000),
        _header("'" * 5001),
        _header("{" * 60_000),
        b"\x93NUMPY\x03\x00" + bytes(4),
        b"\x93NUMPY\x09\x00" + bytes(4),
    ],
    ids=beginning,
)
def test_damaged_arrays_are_refused(content: bytes, path: Path) -> None:
    """Headers that lie, Python objects and other formats are a ValueError."""
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r".+"):
        read_array(path)


def test_other_kinds_of_files_are_refused(path: Path) -> None:
    """Reading a pipe would wait, a device never ends, and a file may be larger than memory."""
    os.mkfifo(path.parent / "pipe")
    for name in (path.parent / "pipe", Path("/dev/zero"), path.parent):
        with pytest.raises(OSError, match="not a regular file"):
            read_file(name)
    with pytest.raises(OSError, match="larger than 100 bytes"):
        read_array(path, 100)


def test_only_files_below_the_folder_are_read(path: Path) -> None:
    """Neither an absolute path, nor .., nor a link leads out of it."""
    folder = path.parent / "inner"
    folder.mkdir()
    (folder / "link.npy").symlink_to(path)
    (folder / "circle.npy").symlink_to("circle.npy")
    for name in (str(path), "../a.npy", "link.npy", "circle.npy", "x" * 5000, "a\0b"):
        with pytest.raises((OSError, ValueError)):
            ArrayFolder(folder).read(name)
    assert ArrayFolder(path.parent).read("inner/../a.npy").tolist() == [0, 1, 2]


def test_arrays_of_a_folder_are_bounded_together(path: Path) -> None:
    """A document may name one file many times."""
    arrays = ArrayFolder(path.parent, bytes_left=path.stat().st_size)
    arrays.read("a.npy")
    with pytest.raises(OSError, match="larger than"):
        arrays.read("a.npy")
