"""Values of tensors in binary and in JSON, content types, and strict JSON."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from constructs_triton_client import InferenceResult
from constructs_triton_client.wire import (
    byte_strings,
    decode_response,
    encode_request,
    encode_response,
)
from constructs_triton_client.wire.byte_strings import (
    encode_byte_strings,
    list_byte_strings,
)
from constructs_triton_client.wire.content_type import (
    BINARY_CONTENT_TYPE,
    format_content_type,
    parse_header_size,
)
from constructs_triton_client.wire.dtypes import bfloat16, datatype_of, dtype_of
from constructs_triton_client.wire.json_text import format_json, measure_json, parse_json
from constructs_triton_client.wire.json_values import list_values, read_values
from constructs_triton_client.wire.tensors import view_bytes
from constructs_triton_core.datatypes import DATATYPES, by_datatype
from constructs_triton_core.errors import RequestEncodingError, ResponseDecodingError


def read(data: Any, datatype: str, shape: list[int], count: int) -> Any:
    row = by_datatype(datatype)
    assert row is not None
    return read_values("path", data, row, shape, count)


@pytest.mark.parametrize(
    "array",
    [
        np.array(["ä", "b"]),
        np.array(["ä".encode(), b"b"]),
        np.array(["ä", b"b"], dtype=object),
        np.array([bytearray("ä".encode()), memoryview(b"b")], dtype=object),
    ],
)
def test_strings_of_any_type_are_encoded(array: Any) -> None:
    """Strings and bytes of every NumPy type have the same encoding."""
    assert encode_byte_strings("path", array) == b"\x02\0\0\0\xc3\xa4\x01\0\0\0b"
    assert list_byte_strings("path", array) == ["ä".encode(), b"b"]
    assert datatype_of(array) is by_datatype("BYTES")


def test_strings_are_in_row_major_order() -> None:
    """An array of any layout is encoded row by row; an array without elements is empty."""
    array = np.asfortranarray(np.array([[b"a", b"b"], [b"c", b"d"]], dtype=object))
    assert list_byte_strings("path", array) == [b"a", b"b", b"c", b"d"]
    assert encode_byte_strings("path", np.array([], dtype=object)) == b""


def test_too_long_strings_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length of an element must fit into four bytes."""
    assert byte_strings._MAXIMUM_LENGTH == 2**32 - 1
    monkeypatch.setattr(byte_strings, "_MAXIMUM_LENGTH", 3)
    assert len(encode_byte_strings("path", np.array([b"abc"]))) == 7
    with pytest.raises(
        RequestEncodingError, match="path: an element may have at most 3 bytes, got 4; split"
    ):
        encode_byte_strings("path", np.array([b"a", b"abcd"], dtype=object))


@pytest.mark.parametrize("row", DATATYPES, ids=lambda row: row.datatype)
def test_each_datatype_has_a_dtype(row: Any) -> None:
    """The dtype of a datatype is that of its arrays, in both byte orders."""
    dtype = dtype_of(row)
    assert datatype_of(np.zeros(1, dtype)) == row
    if row.datatype != "BF16":
        assert datatype_of(np.zeros(1, dtype.newbyteorder(">"))) == row
    assert datatype_of(np.zeros(1, "c8")) is None


def test_bfloat16_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ml_dtypes bfloat16 is its dtype, and without it BF16 is uint16."""
    row = by_datatype("BF16")
    assert row is not None
    assert bfloat16() == np.dtype(ml_dtypes.bfloat16)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    bfloat16.cache_clear()
    dtype_of.cache_clear()
    try:
        assert bfloat16() is None
        assert dtype_of(row) == np.dtype("<u2")
    finally:
        bfloat16.cache_clear()
        dtype_of.cache_clear()


def test_bytes_of_an_array_are_not_copied() -> None:
    """The bytes of a contiguous little-endian array are a view, also of bfloat16."""
    for dtype in ("f4", "u1", "?", ml_dtypes.bfloat16):
        array = np.zeros((2, 3), dtype)
        assert np.shares_memory(np.frombuffer(view_bytes(array), "u1"), array)
    assert bytes(view_bytes(np.array([[1, 2], [3, 4]], ">u2").T)) == b"\1\0\3\0\2\0\4\0"


@pytest.mark.parametrize(
    ("data", "datatype", "shape", "expected"),
    [
        ([], "FP32", [0], []),
        ([[], []], "INT8", [2, 0], []),
        ([0, 255], "UINT8", [2], [0, 255]),
        ([-128, 127], "INT8", [2], [-128, 127]),
        ([1, 2.5], "FP32", [2], [1.0, 2.5]),
        ([65504], "FP16", [1], [65504.0]),
        ([True, False], "BOOL", [2], [True, False]),
        (["ä"], "BYTES", [1], ["ä".encode()]),
        ([2**64 - 1], "UINT64", [1], [2**64 - 1]),
    ],
)
def test_values_in_json_are_read(
    data: Any, datatype: str, shape: list[int], expected: list[Any]
) -> None:
    """Every type of value is read into the dtype of its datatype, up to its limits."""
    array = read(data, datatype, shape, len(expected))
    row = by_datatype(datatype)
    assert row is not None
    assert (array.tolist(), array.dtype) == (expected, dtype_of(row))


@pytest.mark.parametrize(
    ("data", "datatype", "shape", "count", "message"),
    [
        ({}, "INT8", [1], 1, "path: data must be a list, got dict"),
        ([[1], 2], "INT8", [2], 2, "path element 0: must be an integer, got list"),
        (
            [[1, 2]],
            "INT8",
            [2],
            2,
            "nested data must follow shape .2., got lists within lists 1 deep",
        ),
        ([256], "UINT8", [1], 1, "path element 0: UINT8 must be between 0 and 255, got 256"),
        ([0, -129], "INT8", [2], 2, "path element 1: INT8 must be between -128 and 127, got -129"),
        ([True], "INT8", [1], 1, "path element 0: must be an integer, got bool"),
        ([1.0, True], "FP32", [2], 2, "path element 1: must be a number, got bool"),
        ([0, 1], "BOOL", [2], 2, "path element 0: must be true or false, got int"),
        ([1.0, 70000], "FP16", [2], 2, "path element 1: a number must fit FP16, got 70000"),
        ([1], "BF16", [1], 1, "path: BF16 must be in binary, not in JSON"),
    ],
)
def test_wrong_values_in_json_are_rejected(
    data: Any, datatype: str, shape: list[int], count: int, message: str
) -> None:
    """Each error names the element and the value."""
    with pytest.raises(ResponseDecodingError, match=message):
        read(data, datatype, shape, count)


def test_values_are_listed_for_json() -> None:
    """Arrays become flat lists; a number that is not finite names its element."""
    rows = {name: by_datatype(name) for name in ("FP64", "INT8", "BYTES")}
    assert list_values("path", np.array([[1.5], [2]]), rows["FP64"]) == [1.5, 2.0]  # type: ignore[arg-type]
    assert list_values("path", np.array([1], "i1"), rows["INT8"]) == [1]  # type: ignore[arg-type]
    assert list_values("path", np.array(["ä"]), rows["BYTES"]) == ["ä"]  # type: ignore[arg-type]
    with pytest.raises(
        RequestEncodingError, match="path element 1: a number in JSON must be finite, got -inf"
    ):
        list_values("path", np.array([[1.5], [-np.inf]]), rows["FP64"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", None),
        ("", None),
        (f"{BINARY_CONTENT_TYPE};json-header-size=0", 0),
        (f" {BINARY_CONTENT_TYPE.upper()} ; JSON-Header-Size = 12 ; charset=x", 12),
        (f"{BINARY_CONTENT_TYPE};json-header-size={10**18 - 1}", 10**18 - 1),
    ],
)
def test_header_size_is_parsed(content_type: str, expected: int | None) -> None:
    """Spaces, letter case and other parameters do not matter; a JSON body has no size."""
    assert parse_header_size(content_type) == expected


@pytest.mark.parametrize("size", ["", "x", "1.0", "²", "1" * 19, "+1", "0x1"])
def test_invalid_header_size_is_rejected(size: str) -> None:
    """The size is one integer of decimal digits."""
    with pytest.raises(
        ResponseDecodingError, match=r"json-header-size must be one integer, got '.*; the endpoint"
    ):
        parse_header_size(f"{BINARY_CONTENT_TYPE};json-header-size={size}")


def test_content_types_are_formatted() -> None:
    """A body that is all JSON has no size in its content type."""
    assert format_content_type(None) == "application/json"
    assert (
        format_content_type(0) == "application/vnd.sagemaker-triton.binary+json;json-header-size=0"
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"{}", 2),
        (b"{}tail", 2),
        (b'{"a":{"b":1}}}{', 13),
        (b'{"}{":"\\"}"}x', 12),
        (b'{"a":1', 6),
        (b"", 0),
        (b"no object", 9),
        (b"}", 1),
    ],
)
def test_json_at_the_start_is_measured(data: bytes, expected: int) -> None:
    """The object at the start ends at its last brace; without an end it is all of the data."""
    assert measure_json(data) == expected


def test_json_is_strict() -> None:
    """Formatting and parsing reject numbers that are not finite, and errors name the byte."""
    assert format_json({"a": [1, "ä"]}) == b'{"a":[1,"\\u00e4"]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        format_json(float("inf"))
    assert parse_json(memoryview(b'{"a":"NaN"}')) == {"a": "NaN"}
    for literal in ("NaN", "Infinity", "-Infinity"):
        body = f'{{"ä NaN":"Infinity","b":{literal}}}'.encode()
        message = (
            f"^JSON at byte 25: a number must be finite, got {literal}; "
            "request the output in binary"
        )
        with pytest.raises(ResponseDecodingError, match=message):
            parse_json(body)
    with pytest.raises(
        ResponseDecodingError, match=r"^JSON at byte 5: is not JSON \(expecting value\)"
    ):
        parse_json(b'{"a":}')
    with pytest.raises(ResponseDecodingError, match=r"^JSON at byte 6: is not JSON"):
        parse_json('{"ä":}'.encode())
    with pytest.raises(
        ResponseDecodingError, match=r"^JSON at byte 0: must be a JSON object, got int"
    ):
        parse_json(b"1")


def test_result_is_a_mapping() -> None:
    """A result has the names, arrays and length of its outputs."""
    result = InferenceResult({"Y": np.zeros(1), "X": np.ones(1)})
    assert (list(result), len(result), "X" in result) == (["Y", "X"], 2, True)
    assert (result.latency_seconds, result.model_name, result.model_version, result.id) == (
        None,
        "",
        "",
        "",
    )
    assert (dict(result.metadata), dict(result.datatypes), dict(result.parameters)) == ({}, {}, {})


def test_inputs_are_any_mapping() -> None:
    """Inputs need not be a dict."""
    assert encode_request(MappingProxyType({"X": np.zeros(1, "u1")})).body.endswith(b"}\0")


def test_arrays_of_a_writable_body_are_read_only() -> None:
    """The arrays of a bytearray cannot be written to either."""
    response = encode_response({"Y": np.zeros(2, "f4")})
    array = decode_response(bytearray(response.body), response.content_type)["Y"]
    assert not array.flags.writeable


def test_bodies_are_any_buffer() -> None:
    """A body may be bytes, a bytearray or a memoryview of larger items."""
    body = b'{"outputs":[]} '
    body += b" " * (-len(body) % 4)
    for buffer in (body, bytearray(body), np.frombuffer(body, "u4").data):
        assert list(decode_response(buffer, "application/json")) == []
