"""Responses with values of every wrong type, and those that would take hours or all memory."""

from __future__ import annotations

import json
import resource
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from constructs_triton_client import wire
from constructs_triton_client.errors import read_model_message
from constructs_triton_client.generation import read_generation
from constructs_triton_client.wire import decode_response, json_text
from constructs_triton_client.wire.json_text import measure_json
from constructs_triton_core.errors import ConstructsTritonError, ResponseDecodingError

JSON = "application/json"
OUTPUT = {"name": "Y", "datatype": "FP32", "shape": [1], "data": [1.5], "parameters": {"a": 1}}
RESPONSE = {
    "model_name": "m",
    "model_version": "1",
    "id": "i",
    "parameters": {},
    "outputs": [OUTPUT],
}
WORDS = r"""
    null true -1 0 1.5 1e400 -1e400 1e-400 NaN -Infinity "" "a" "1.5" "\ud800" "\u0000"
    [] {} [[]] [{}] [null] ["a"] [1,2] [[1],[2,3]] [1e400] [true] [-1] [9223372036854775807]
    {"a":{}} {"binary_data_size":0}
    {"binary_data_size":1e3} {"binary_data_size":true} {"binary_data_size":[]}
"""
LITERALS = (*WORDS.split(), "9" * 4000, "9" * 5000)


def replaced(target: dict[str, Any], name: str, literal: str) -> bytes:
    """Return the response in JSON, with a literal in the place of one member of ``target``."""
    text = json.dumps(RESPONSE)
    old = json.dumps(target)
    new = json.dumps({**target, name: "@"}).replace('"@"', literal)
    return text.replace(old, new).encode()


@pytest.mark.parametrize("name", [*RESPONSE, "error"])
def test_members_of_a_response_may_have_any_type(name: str) -> None:
    """A member of another type is an error or ignored, and the error can be printed."""
    for literal in LITERALS:
        with suppress(ResponseDecodingError):
            decode_response(replaced(RESPONSE, name, literal), JSON)


@pytest.mark.parametrize("datatype", ["FP32", "FP16", "BF16", "INT8", "UINT64", "BOOL", "BYTES"])
def test_members_of_an_output_may_have_any_type(
    datatype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member of another type is an error for every datatype, in JSON or in binary."""
    monkeypatch.setitem(OUTPUT, "datatype", datatype)
    for name in OUTPUT:
        for literal in LITERALS:
            said = ""
            try:
                decode_response(replaced(OUTPUT, name, literal), JSON)
            except ResponseDecodingError as error:
                said = str(error)
            assert len(said.encode()) < 1000


@pytest.mark.parametrize("member", ["error", "id", "outputs", *OUTPUT])
def test_nesting_of_every_depth(member: str) -> None:
    """JSON that is just as deep as Python can parse raises no other error when it is printed."""
    target = RESPONSE if member in RESPONSE or member == "error" else OUTPUT
    for depth in (*range(1, 20), *range(900, 1020)):
        for nested in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
            body = replaced(target, member, nested)
            with suppress(ResponseDecodingError):
                decode_response(body, JSON)
            read_model_message(body)
            with suppress(ConstructsTritonError):
                list(read_generation([b"data: ", body, b"\n\n"]))


@pytest.mark.parametrize("size", [2**63 - 1, 0])
def test_a_shape_of_a_million_dimensions_is_an_error(size: int) -> None:
    """The product of a million numbers is not calculated, because it would take hours."""
    with pytest.raises(ResponseDecodingError, match="shape must be one that NumPy supports"):
        decode_response(replaced(OUTPUT, "shape", json.dumps([size] * 1_000_000)), JSON)


def test_json_has_a_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON of the maximum size is parsed, and one more byte is an error that
    names the way in binary.
    """
    body = json.dumps(RESPONSE).encode()
    monkeypatch.setattr(json_text, "MAXIMUM_JSON_BYTES", len(body))
    assert decode_response(body, JSON).id == "i"
    with pytest.raises(
        ResponseDecodingError, match=f"at most {len(body)} bytes, got {len(body) + 1}; request"
    ):
        decode_response(body + b" ", JSON)
    binary = wire.encode_response({"Y": np.zeros(1000)})
    assert decode_response(binary.body, binary.content_type)["Y"].size == 1000


@pytest.mark.parametrize(
    "data",
    [
        b'{"' + rb"\"" * 2**20,
        b'{"' + b"\\" * 2**21,
        b'{"' + b"a" * 2**24,
        b"{" * 2**18,
        b'{"a":"' * 2**18,
    ],
    ids=["quotes", "backslashes", "letters", "braces", "strings"],
)
def test_the_end_of_json_is_searched_in_linear_time(data: bytes) -> None:
    """JSON without an end, and a string without an end, are read in constant memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert measure_json(data) == len(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_long_string_before_nan_needs_no_memory() -> None:
    """Locating NaN takes no memory for the strings before it."""
    body = b'{"a":"' + b"x" * 2**24 + b'","b":NaN}'
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(
        ResponseDecodingError, match=f"JSON at byte {2**24 + 12}: a number must be finite, got NaN"
    ):
        decode_response(body, JSON)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
