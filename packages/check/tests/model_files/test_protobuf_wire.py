"""The walk over a protobuf message, also over hostile bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st

from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.model_files import protobuf_wire
from triton_model_check.model_files.onnx_graph import read_model
from triton_model_check.model_files.protobuf_wire import (
    Field,
    MessageFile,
    MessageReader,
    WireError,
    signed,
)
from triton_model_check.model_files.varint import encode_varint


@contextmanager
def _reader(content: bytes, path: Path) -> Iterator[MessageReader]:
    path.write_bytes(content)
    with path.open("rb") as file:
        yield MessageFile(file).root()


def _fields(content: bytes, path: Path) -> list[Field]:
    with _reader(content, path) as reader:
        return list(reader)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a path for the message."""
    return tmp_path / "message"


def test_fields_of_all_wire_types(path: Path) -> None:
    """Integers, bytes and fixed numbers are read in order."""
    content = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d\x01\0\0\0" + b"\x21\x02\0\0\0\0\0\0\0"
    with _reader(content, path) as reader:
        fields = list(reader)
        assert reader.text(fields[1]) == "abc"
        assert b"".join(reader.encoded(field) for field in fields) == content
    assert [(field.number, field.value, field.is_bytes) for field in fields] == [
        (1, 150, False),
        (2, 0, True),
        (3, 1, False),
        (4, 2, False),
    ]


def test_large_fields_are_not_read(path: Path) -> None:
    """A field of 1 GiB is skipped; what follows it is read."""
    size = 1 << 30
    with path.open("wb") as file:
        file.write(b"\x0a" + encode_varint(size))
        file.seek(size, os.SEEK_CUR)
        file.write(b"\x12\x01z")
    with path.open("rb") as file:
        message = MessageFile(file)
        reader = message.root()
        first, second = reader
        assert (first.end - first.start, reader.text(second)) == (size, "z")
        assert len(message.block) <= protobuf_wire._BLOCK_BYTES


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x08", "an integer does not end"),
        (b"\x08" + b"\xff" * 11, "an integer does not end"),
        (b"\x0a\x05abc", "longer than what contains it"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "longer than what contains it"),
        (b"\x0d\0\0", "longer than what contains it"),
        (b"\x00\x01", "no field has the number 0"),
        (b"\x0b", "wire type 3"),
        (b"\x0f", "wire type 7"),
        (b"\xf8\xff\xff\xff\xff\x0f\x01", "no field has the number"),
    ],
)
def test_wrong_bytes_raise_an_error(content: bytes, reason: str, path: Path) -> None:
    """Whatever is not a message raises WireError with the reason."""
    with pytest.raises(WireError, match=reason):
        _fields(content, path)


def test_message_within_a_message_does_not_reach_outside(path: Path) -> None:
    """The length of an inner field is limited by the message that contains it."""
    with _reader(b"\x0a\x02\x0a\x05" + b"outside", path) as reader:
        inner = reader.message(next(iter(reader)))
        with pytest.raises(WireError, match="longer than what contains it"):
            list(inner)


def test_wrong_wire_type_raises_an_error(path: Path) -> None:
    """An integer is neither bytes nor a message."""
    with _reader(b"\x08\x01", path) as reader:
        (field,) = reader
        for read in (reader.raw, reader.message):
            with pytest.raises(WireError, match="field 1 must"):
                read(field)


def test_work_is_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many fields, and a string of many megabytes, are refused without reading them."""
    monkeypatch.setattr(protobuf_wire, "_STEPS", 10)
    with pytest.raises(OverBudgetError, match="more than 10 fields and values"):
        _fields(b"\x08\x01" * 12, path)
    with path.open("wb") as file:
        file.write(b"\x0a" + encode_varint(32 << 20))
        file.truncate(64 << 20)
    with path.open("rb") as file:
        reader = MessageFile(file).root()
        field = next(iter(reader))
        with pytest.raises(OverBudgetError, match="a field has"):
            reader.raw(field)
        with pytest.raises(OverBudgetError, match="a name has"):
            reader.text(field)


def test_larger_files_may_have_more_fields(path: Path) -> None:
    """A step is added for each 50 bytes, up to 500,000, so that large graphs are read."""
    for size, steps in ((0, 250_000), (10_000_000, 450_000), (1 << 30, 500_000)):
        with path.open("wb") as file:
            file.truncate(size)
        with path.open("rb") as file:
            assert MessageFile(file).budget.steps == steps


def test_long_names_count_by_their_length(path: Path) -> None:
    """A name of a kilobyte takes as much of the budget as 16 fields."""
    with _reader(b"\x0a" + encode_varint(1024) + b"n" * 1024, path) as reader:
        (field,) = reader
        before = reader._file.budget.left
        reader.text(field)
        assert before - reader._file.budget.left == 16


def test_a_file_that_shrinks_raises_an_error(path: Path) -> None:
    """A file that is cut while it is read does not end the walk early."""
    path.write_bytes(b"\x0a\x05abcde")
    with path.open("rb") as file:
        reader = MessageFile(file).root()
        os.truncate(path, 3)
        with pytest.raises(WireError, match=r"in the middle|does not end|is longer"):
            [reader.raw(field) for field in reader]


@settings(deadline=None)
@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_signed_integers(value: int) -> None:
    """A negative integer is encoded as its two's complement of 64 bits."""
    assert signed(value & (2**64 - 1)) == value


@settings(deadline=None)
@given(content=st.binary(max_size=200))
def test_random_bytes_give_a_message_or_an_error(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Reading a model from any bytes ends, and raises no other error."""
    path = tmp_path_factory.getbasetemp() / "random"
    with _reader(content, path) as reader, suppress(WireError):
        read_model(reader)


@settings(deadline=None)
@given(name=st.text(max_size=30), names=st.lists(st.text(max_size=10), max_size=5))
def test_agrees_with_protobuf(
    name: str, names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What protobuf writes is read with the same numbers and strings."""
    path = tmp_path_factory.getbasetemp() / "descriptor"
    content = FileDescriptorProto(name=name, dependency=names).SerializeToString()
    with _reader(content, path) as reader:
        found = [(field.number, reader.text(field)) for field in reader]
    assert found == [(1, name)] + [(3, each) for each in names]
