"""Responses: views, and every way in which one can be malformed."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest

from constructs_triton.errors import ResponseDecodingError
from constructs_triton.wire import (
    BINARY_CONTENT_TYPE,
    JSON_CONTENT_TYPE,
    Classification,
    InferenceResult,
    decode_response,
    encode_response,
    responses,
)


def binary(header: dict[str, Any], tail: bytes = b"") -> tuple[bytes, str]:
    text = json.dumps(header).encode()
    return text + tail, f"{BINARY_CONTENT_TYPE};json-header-size={len(text)}"


def tensor(datatype: str = "FP32", shape: Any = (1,), size: Any = 4, **members: Any) -> dict[str, Any]:
    entry = {"name": "Y", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": size}}
    return {"outputs": [entry | members]}


def in_json(data: Any, datatype: str = "FP32", shape: Any = (1,)) -> tuple[bytes, str]:
    entry = {"name": "Y", "datatype": datatype, "shape": shape, "data": data}
    return json.dumps({"outputs": [entry]}).encode(), JSON_CONTENT_TYPE


def test_numbers_are_read_only_views_of_the_body() -> None:
    """Nothing is copied, and nobody can write into the response."""
    response = encode_response({"Y": np.zeros((64, 3, 224, 224), dtype="f2")})
    tracemalloc.start()
    array = decode_response(response.body, response.content_type)["Y"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000
    assert np.shares_memory(array, np.frombuffer(response.body, dtype="u1"))
    assert not array.flags.writeable


def test_answer_of_tritons_shape() -> None:
    """Model, version, id and parameters of an ensemble's answer are kept."""
    header = {
        "id": "7",
        "model_name": "pipe",
        "model_version": "1",
        "parameters": {"sequence_id": 0},
        **tensor(shape=[1, 1]),
    }
    result = decode_response(*binary(header, b"\x00\x00\x80\x3f"))
    assert (result.model_name, result.model_version, result.id) == ("pipe", "1", "7")
    assert result.parameters == {"sequence_id": 0}
    assert result["Y"].tolist() == [[1.0]]
    assert list(result) == ["Y"]


def test_nested_json_data_follows_the_shape() -> None:
    """KServe allows nested lists, as long as they are of the shape."""
    assert decode_response(*in_json([[1, 2], [3, 4]], "INT8", [2, 2]))["Y"].tolist() == [[1, 2], [3, 4]]


def test_booleans_of_any_byte_are_true_or_false() -> None:
    """A byte that is neither 0 nor 1 counts as true, as in C."""
    assert decode_response(*binary(tensor("BOOL", [3], 3), b"\x00\x02\x01"))["Y"].tolist() == [
        False,
        True,
        True,
    ]


def test_bf16_without_ml_dtypes_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result names the outputs whose elements are bit patterns, and only when they are."""
    result = InferenceResult({"Y": np.zeros(1, dtype="u2")}, {"Y": "BF16"})
    assert result.bit_patterns == frozenset()
    monkeypatch.setattr(responses, "bfloat16", lambda: None)
    assert result.bit_patterns == {"Y"}


def test_classifications_are_parsed_in_batches() -> None:
    """A class reads score, index and, with colons of its own, label."""
    rows = np.array([[b"0.9:3:cat:big", b"0.1:7"]], dtype=object)
    assert InferenceResult({"Y": rows}).classifications("Y") == [
        [Classification(0.9, 3, "cat:big"), Classification(0.1, 7, "")]
    ]
    with pytest.raises(ResponseDecodingError, match='output "Y": a class must read'):
        InferenceResult({"Y": np.array([b"cat"], dtype=object)}).classifications("Y")


@pytest.mark.parametrize(
    "strings", [[b"same", b"size", b"\0\0\0\0"], [b"", b"a\0", b"long" * 100], [b"", b""], []]
)
def test_byte_strings_come_back_whole(strings: list[bytes]) -> None:
    """Equal lengths, empty strings and zero bytes at the end all survive."""
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    response = encode_response({"Y": array})
    assert decode_response(response.body, response.content_type)["Y"].tolist() == strings


LENGTHS = {
    "cut within a length": (b"\x02\x00\x00\x00aa\x02\x00", 2, "108: element 1 of 2 has no length, got 2"),
    "promise beyond the end": (
        b"\x01\x00\x00\x00a\xff\xff\xff\xffb",
        2,
        "element 1 promises 4294967295 bytes",
    ),
    "last one short": (b"\x01\x00\x00\x00a\x03\x00\x00\x00bb", 2, "element 1 promises 3 bytes, got 2"),
    "bytes left over": (b"\x01\x00\x00\x00a\x01\x00\x00\x00bXX", 2, "2 elements end before the tensor"),
    "too many elements": (b"\x00\x00\x00\x00", 2, "2 elements need at least 8 bytes, got 4"),
}


@pytest.mark.parametrize(("tail", "count", "message"), LENGTHS.values(), ids=LENGTHS)
def test_faulty_string_lengths_name_the_element(tail: bytes, count: int, message: str) -> None:
    """A string tensor that does not add up says which element and which byte."""
    with pytest.raises(ResponseDecodingError, match=message) as caught:
        decode_response(*binary(tensor("BYTES", [count], len(tail)), tail))
    assert 'output "Y" at byte ' in str(caught.value)


HUGE = 10 * 10**9

MALFORMED = {
    "empty": ((b"", JSON_CONTENT_TYPE), "at byte 0: is not JSON"),
    "not an object": ((b"[1]", JSON_CONTENT_TYPE), "must be a JSON object, got list"),
    "an error": ((b'{"error":"no model"}', JSON_CONTENT_TYPE), "no model"),
    "invalid UTF-8": ((b'{"id":"\xff"}', JSON_CONTENT_TYPE), "at byte 7: is not valid UTF-8, got 0xff"),
    "UTF-16": (('{"outputs":[]}'.encode("utf-16"), JSON_CONTENT_TYPE), "at byte 0: is not valid UTF-8"),
    "NaN": ((b'{"id":"NaN","x":[NaN]}', JSON_CONTENT_TYPE), "at byte 17: a number must be finite, got NaN"),
    "deep nesting": ((b"[" * 100_000, JSON_CONTENT_TYPE), "RecursionError"),
    "endless digits": ((b'{"x":' + b"9" * 9999 + b"}", JSON_CONTENT_TYPE), "is not usable JSON"),
    "no size": ((b"{}", BINARY_CONTENT_TYPE), "json-header-size must be one whole number"),
    "negative size": ((b"{}", f"{BINARY_CONTENT_TYPE};json-header-size=-1"), "json-header-size"),
    "two sizes": (
        (b"{}", f"{BINARY_CONTENT_TYPE};json-header-size=1;json-header-size=2"),
        "json-header-size",
    ),
    "header beyond body": ((b"{}", f"{BINARY_CONTENT_TYPE};json-header-size={HUGE}"), f"got {HUGE}"),
    "outputs missing": (binary({}), "outputs must be a list, got None"),
    "output no object": (binary({"outputs": [1]}), "output 0: must be a JSON object"),
    "nameless": (binary(tensor(name=3)), "output 0: name must be a string, got 3"),
    "twice": (binary({"outputs": tensor(size=0, shape=[0])["outputs"] * 2}), "must be there once, got 'Y'"),
    "unknown datatype": (
        binary(tensor("FP8")),
        "output \"Y\": datatype must be one of KServe v2's, got 'FP8'",
    ),
    "negative dimension": (binary(tensor(shape=[-1])), "none negative"),
    "boolean dimension": (binary(tensor(shape=[True])), "whole numbers"),
    "dimension beyond int64": (binary(tensor(shape=[0, 2**63], size=0)), "none negative"),
    "axes beyond NumPy": (binary(tensor(shape=[1] * 99), b"abcd"), "one that NumPy can hold"),
    "empty and too large": (binary(tensor(shape=[0, 2**62, 2**62], size=0)), "one that NumPy can hold"),
    "negative data size": (binary(tensor(size=-4)), "not negative, got -4"),
    "parameters no object": (binary(tensor(parameters=[])), "parameters must be a JSON object"),
    "truncated": (binary(tensor(shape=[2], size=8), b"abcd"), r'"Y" at byte \d+: .* promises 8 bytes, got 4'),
    "promises 10 GB": (binary(tensor("UINT8", [HUGE], HUGE), b"abcd"), f"promises {HUGE} bytes, got 4"),
    "size against shape": (binary(tensor(shape=[2]), b"abcd"), "2 elements of FP32 take 8 bytes, got .* 4"),
    "10 GB of shape": (binary(tensor("BYTES", [HUGE]), b"abcd"), f"{HUGE} elements need at least"),
    "oversized": (binary(tensor(), b"abcdefgh"), "no output claims the last bytes, got 4"),
    "JSON data missing": (
        binary({"outputs": [{"name": "Y", "datatype": "BOOL", "shape": [1]}]}),
        "must be a list",
    ),
    "too few values": (in_json([1.0], shape=[2]), r"shape \[2\] has 2 elements, got 1 values"),
    "ragged": (in_json([[1], [2, 3, 4]], shape=[2, 2]), "nested data must follow shape"),
    "text for number": (in_json([1.0, "x"], shape=[2]), 'output "Y" element 1: must be a number, got str'),
    "number for text": (in_json([1], "BYTES"), "must be a string, got int"),
    "number for boolean": (in_json([1], "BOOL"), "must be true or false, got int"),
    "fraction for integer": (in_json([1.5], "INT32"), "must be a whole number, got float"),
    "out of range": (in_json([300], "UINT8"), "UINT8 holds 0 to 255, got 300"),
    "beyond FP32": (in_json([1e300]), "must fit FP32, got 1e"),
    "beyond FP64": (in_json([10**400], "FP64"), "must fit FP64"),
    "BF16 in JSON": (in_json([1], "BF16"), 'output "Y": BF16 comes in binary only'),
    "lone surrogate": (in_json(["\ud800"], "BYTES"), "must be valid Unicode"),
    "version no text": (binary({"outputs": [], "model_version": 1}), "model_version must be a string, got 1"),
}


@pytest.mark.parametrize(("response", "message"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_responses_are_refused_with_their_place(response: tuple[bytes, str], message: str) -> None:
    """Each fault is named, and none of them costs memory that the response only promises."""
    tracemalloc.start()
    try:
        with pytest.raises(ResponseDecodingError, match=message):
            decode_response(*response)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
