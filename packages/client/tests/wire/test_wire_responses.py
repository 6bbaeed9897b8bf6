"""Decoding of responses: views, values and malformed responses."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

from constructs_triton_client import Classification, InferenceResult
from constructs_triton_client.wire import decode_response, encode_response, responses
from constructs_triton_client.wire.content_type import BINARY_CONTENT_TYPE, JSON_CONTENT_TYPE
from constructs_triton_core.errors import ResponseDecodingError


def binary(header: dict[str, Any], tail: bytes = b"") -> tuple[bytes, str]:
    text = json.dumps(header).encode()
    return text + tail, f"{BINARY_CONTENT_TYPE};json-header-size={len(text)}"


def tensor(
    datatype: str = "FP32", shape: Any = (1,), size: Any = 4, **members: Any
) -> dict[str, Any]:
    entry = {
        "name": "Y",
        "datatype": datatype,
        "shape": shape,
        "parameters": {"binary_data_size": size},
    }
    return {"outputs": [entry | members]}


def strings(count: int, tail: bytes) -> tuple[bytes, str]:
    return binary(tensor("BYTES", [count], len(tail)), tail)


def in_json(data: Any, datatype: str = "FP32", shape: Any = (1,)) -> tuple[bytes, str]:
    entry = {"name": "Y", "datatype": datatype, "shape": shape, "data": data}
    return json.dumps({"outputs": [entry]}).encode(), JSON_CONTENT_TYPE


def test_numbers_are_read_only_views_of_the_body() -> None:
    """Nothing is copied, and the arrays cannot be written to."""
    response = encode_response({"Y": np.zeros((64, 3, 224, 224), dtype="f2")})
    tracemalloc.start()
    array = decode_response(response.body, response.content_type)["Y"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000
    assert np.shares_memory(array, np.frombuffer(response.body, dtype="u1"))
    assert not array.flags.writeable


def test_members_of_a_response() -> None:
    """The result has the model, version, id and parameters of the response."""
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


def test_missing_output_is_reported_with_those_that_exist() -> None:
    """An unknown name is a ``KeyError`` that lists the outputs, and ``get`` returns its default."""
    result = InferenceResult({"score": np.zeros(1), "label": np.ones(1)})
    for read in (result.__getitem__, result.classifications):
        with pytest.raises(
            KeyError, match=r'^\'result\["prio"\]: .*; its outputs are "score" and "label"\'$'
        ):
            read("prio")
    with pytest.raises(KeyError, match=r"no such output; it has none"):
        InferenceResult({})["prio"]
    assert result.get("prio") is None


def test_methods_of_tritonclient_name_the_item_to_read() -> None:
    """A result has no ``as_numpy``; its error shows the name of an output,
    and copies are not affected.
    """
    result: Any = InferenceResult({"SUM": np.ones(1)})
    empty: Any = InferenceResult({})
    for name in ("as_numpy", "get_output", "get_response"):
        with pytest.raises(
            AttributeError, match=rf'no attribute \'{name}\'; write result\["SUM"\]'
        ):
            getattr(result, name)
    with pytest.raises(AttributeError, match=r'write result\["OUTPUT"\]'):
        _ = empty.as_numpy
    with pytest.raises(AttributeError, match=r"no attribute 'prio'$"):
        _ = result.prio
    assert not hasattr(result, "as_numpy")
    assert not hasattr(InferenceResult.__new__(InferenceResult), "arrays")
    for same in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert same["SUM"].tolist() == [1.0]


def test_nested_json_data_follows_the_shape() -> None:
    """KServe allows nested lists of the tensor's shape, at any depth."""
    deep = [[[1, 2, 3]], [[4, 5, 6]]]
    assert decode_response(*in_json(deep, "INT8", [2, 1, 3]))["Y"].tolist() == deep
    assert decode_response(*in_json([[1, 2], [3, 4]], "INT8", [2, 2]))["Y"].tolist() == [
        [1, 2],
        [3, 4],
    ]


def test_booleans_of_any_byte_are_true_or_false() -> None:
    """A byte other than 0 is true, as in C."""
    found = decode_response(*binary(tensor("BOOL", [3], 3), b"\x00\x02\x01"))["Y"]
    assert found.tolist() == [False, True, True]


def test_bf16_without_ml_dtypes_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result lists the outputs whose elements are bit patterns,
    only if ml_dtypes is missing.
    """
    result = InferenceResult({"Y": np.zeros(1, dtype="u2")}, {"Y": "BF16"})
    assert result.bit_patterns == frozenset()
    monkeypatch.setattr(responses, "bfloat16", lambda: None)
    assert result.bit_patterns == {"Y"}


@pytest.mark.parametrize(
    ("elements", "found"),
    [
        (
            [[b"0.9:3:cat:big", b"0.1:7"]],
            [[Classification(0.9, 3, "cat:big"), Classification(0.1, 7, "")]],
        ),
        (b"0.5:1", [[Classification(0.5, 1, "")]]),
        (
            [[[b"1:0:a"]], [[b"2:1:b"]]],
            [[Classification(1.0, 0, "a")], [Classification(2.0, 1, "b")]],
        ),
        (np.zeros((0,)), [[]]),
        (np.zeros((2, 0)), [[], []]),
        (np.zeros((0, 3)), []),
    ],
)
def test_classifications_are_parsed_in_batches(
    elements: Any, found: list[list[Classification]]
) -> None:
    """A class is score, index and an optional label, in rows of any shape: a scalar is one row."""
    assert InferenceResult({"Y": np.array(elements, dtype=object)}).classifications("Y") == found


@pytest.mark.parametrize("wrong", [b"cat", "text", b"x:1:a", b"1:x:a", b"1", 5])
def test_element_that_is_no_class_is_an_error(wrong: object) -> None:
    """The error has the form of a class, and the option that requests classes."""
    message = r'output "Y": a class must be value:index:label, got .* with RequestedOut'
    with pytest.raises(ResponseDecodingError, match=message):
        InferenceResult({"Y": np.array([wrong], dtype=object)}).classifications("Y")


@pytest.mark.parametrize(
    "strings",
    [
        *([b"same", b"size", b"\0\0\0\0"], [b"", b"a\0", b"long" * 100], [b"", b""], []),
        *([b"ab", b"cd"], [b"ab", b"c", b"def"], [b""], [b"a"], [b"\0\0"]),
    ],
)
def test_byte_strings_come_back_whole(strings: list[bytes]) -> None:
    """Strings of equal length, empty strings and zero bytes at the end are decoded exactly."""
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    response = encode_response({"Y": array})
    assert decode_response(response.body, response.content_type)["Y"].tolist() == strings


SIZE = f"{BINARY_CONTENT_TYPE};json-header-size="
HUGE = 10 * 10**9
TWICE = binary({"outputs": tensor(size=0, shape=[0])["outputs"] * 2})
CORRUPT = "; the body is corrupt or incomplete, so send the request again"
NO_DATA = binary({"outputs": [{"name": "Y", "datatype": "BOOL", "shape": [1]}]})

CUT, BEYOND = b"\2\0\0\0aa\2\0", b"\1\0\0\0a\xff\xff\xff\xffb"

MALFORMED = {
    "empty": ((b"", JSON_CONTENT_TYPE), r"at byte 0: is not JSON \(expecting value\); the body"),
    "page": (
        (b"<html>login</html>", JSON_CONTENT_TYPE),
        r"is not JSON \(.*\), got '<html>login</html>'; the",
    ),
    "not an object": ((b"[1]", JSON_CONTENT_TYPE), "must be a JSON object, got list"),
    "an error": ((b'{"error":"no model"}', JSON_CONTENT_TYPE), "no model"),
    "invalid UTF-8": (
        (b'{"id":"\xff"}', JSON_CONTENT_TYPE),
        "at byte 7: is not valid UTF-8, got 0xff",
    ),
    "UTF-16": (
        ('{"outputs":[]}'.encode("utf-16"), JSON_CONTENT_TYPE),
        "at byte 0: is not valid UTF-8",
    ),
    "NaN": (
        (b'{"id":"NaN","x":[NaN]}', JSON_CONTENT_TYPE),
        "at byte 17: a number must be finite, got NaN",
    ),
    "deep nesting": ((b"[" * 100_000, JSON_CONTENT_TYPE), "RecursionError"),
    "endless digits": (
        (b'{"x":' + b"9" * 9999 + b"}", JSON_CONTENT_TYPE),
        "cannot be parsed as JSON",
    ),
    "no size": ((b"{}", BINARY_CONTENT_TYPE), "json-header-size must be one integer"),
    "negative size": ((b"{}", SIZE + "-1"), "json-header-size"),
    "two sizes": ((b"{}", SIZE + "1;json-header-size=2"), "json-header-size"),
    "header beyond body": (
        (b"{}", f"{SIZE}{HUGE}"),
        f"at most the size of the body, 2 bytes, got {HUGE}",
    ),
    "outputs missing": (binary({}), "outputs must be a list, got None"),
    "output no object": (binary({"outputs": [1]}), "output 0: must be a JSON object"),
    "nameless": (binary(tensor(name=3)), "output 0: name must be a non-empty string, got 3"),
    "twice": (TWICE, f'^output "Y": occurs more than once{CORRUPT}$'),
    "unknown datatype": (
        binary(tensor("FP8")),
        "output \"Y\": datatype must be one of KServe v2, got 'FP8'",
    ),
    "negative dimension": (binary(tensor(shape=[-1])), "integers of 0 or more"),
    "boolean dimension": (binary(tensor(shape=[True])), "integers of 0 or more, got \\[True\\]"),
    "dimension beyond int64": (binary(tensor(shape=[0, 2**63], size=0)), "integers of 0 or more"),
    "axes beyond NumPy": (binary(tensor(shape=[1] * 99), b"abcd"), "one that NumPy supports"),
    "empty and too large": (
        binary(tensor(shape=[0, 2**62, 2**62], size=0)),
        "one that NumPy supports",
    ),
    "negative data size": (binary(tensor(size=-4)), "must be an integer of 0 or more, got -4"),
    "parameters no object": (binary(tensor(parameters=[])), "parameters must be a JSON object"),
    "dimension of 63 bits": (
        in_json([], "INT8", [0, 2**63 - 1, 2]),
        "must be one that NumPy supports",
    ),
    "dimension of 64 bits": (in_json([], "INT8", [0, 2**63, 2]), "list of integers"),
    "huge integer": (in_json([10**400], "INT32"), "element 0: INT32 must be between .*, got 1000"),
    "negative for unsigned": (in_json([7, -1, 9], "UINT8", [3]), "element 1: UINT8 .* got -1"),
    "nested deeper than the shape": (
        in_json([[[1]]], "INT8", [1, 1]),
        "nested data must follow shape",
    ),
    "nested of another shape": (
        in_json([[[1], [2]]], "INT8", [1, 1, 2]),
        "nested data must follow shape",
    ),
    "id no string": (binary({"outputs": [], "id": 1}), "id must be a string, got 1"),
    "name no string": (binary({"outputs": [], "model_name": []}), "model_name must be a string"),
    "parameters of the response": (
        binary({"outputs": [], "parameters": 1}),
        "JSON: parameters must be",
    ),
    "empty name": (binary(tensor(name="")), "output 0: name must be a non-empty string, got ''"),
    "no shape": (binary(tensor(shape=None)), "shape must be a list of integers"),
    "boolean size": (
        binary(tensor(size=True, datatype="BOOL"), b"1"),
        "binary_data_size must be an integer",
    ),
    "one byte short": (binary(tensor(), b"abc"), "binary_data_size is 4 bytes, got 3"),
    "one byte more": (
        binary(tensor(), b"abcde"),
        "the last bytes belong to no output, got 1 bytes",
    ),
    "infinity": (in_json([float("inf")]), "a number must be finite, got Infinity"),
    "minus infinity": (in_json([-float("inf")]), "a number must be finite, got -Infinity"),
    "truncated": (
        binary(tensor(shape=[2], size=8), b"abcd"),
        r'"Y" at byte \d+: .*_size is 8 bytes, got 4',
    ),
    "size of 10 GB": (
        binary(tensor("UINT8", [HUGE], HUGE), b"abcd"),
        f"_size is {HUGE} bytes, got 4",
    ),
    "size against shape": (
        binary(tensor(shape=[2]), b"abcd"),
        "of FP32 are 8 bytes, got binary_data_size 4",
    ),
    "10 GB of shape": (binary(tensor("BYTES", [HUGE]), b"abcd"), f"{HUGE} elements need at least"),
    "oversized": (binary(tensor(), b"abcdefgh"), "the last bytes belong to no output, got 4 bytes"),
    "JSON data missing": (NO_DATA, "must be a list"),
    "too few values": (in_json([1.0], shape=[2]), r"shape \[2\] has 2 elements, got 1 values"),
    "ragged": (in_json([[1], [2, 3, 4]], shape=[2, 2]), "nested data must follow shape"),
    "text for number": (
        in_json([1.0, "x"], shape=[2]),
        'output "Y" element 1: must be a number, got str',
    ),
    "number for text": (in_json([1], "BYTES"), "must be a string, got int"),
    "number for boolean": (in_json([1], "BOOL"), "must be true or false, got int"),
    "fraction for integer": (in_json([1.5], "INT32"), "must be an integer, got float"),
    "out of range": (in_json([300], "UINT8"), "UINT8 must be between 0 and 255, got 300"),
    "beyond FP32": (in_json([1e300]), "must fit FP32, got 1e"),
    "beyond FP64": (in_json([10**400], "FP64"), "must fit FP64"),
    "BF16 in JSON": (in_json([1], "BF16"), 'output "Y": BF16 must be in binary'),
    "lone surrogate": (in_json(["\ud800"], "BYTES"), "must be valid Unicode"),
    "cut within a length": (
        strings(2, CUT),
        '"Y" at byte 108: element 1 of 2 has no complete length, got 2 bytes',
    ),
    "length beyond the end": (
        strings(2, BEYOND),
        "element 1 has a length of 4294967295 bytes, got 1 bytes",
    ),
    "last one short": (
        strings(2, b"\1\0\0\0a\3\0\0\0bb"),
        "element 1 has a length of 3 bytes, got 2 bytes",
    ),
    "bytes left over": (
        strings(2, b"\1\0\0\0a\1\0\0\0bXX"),
        "bytes are left over after 2 elements, got 2",
    ),
    "too many elements": (
        strings(2, b"\0\0\0\0"),
        "byte 102: 2 elements need at least 8 bytes, got 4",
    ),
    "second length cut": (
        strings(2, b"\1\0\0\0a\1\0\0"),
        "107: element 1 of 2 has no complete length",
    ),
    "first length beyond the end": (
        strings(1, b"\x09\0\0\0a"),
        "106: element 0 has a length of 9 bytes",
    ),
    "no element, but a byte": (strings(0, b"x"), "102: bytes are left over after 0 elements"),
    "two elements in seven bytes": (
        strings(2, b"1234567"),
        "102: 2 elements need at least 8 bytes",
    ),
    "version no text": (
        binary({"outputs": [], "model_version": 1}),
        "model_version must be a string, got 1",
    ),
}


@pytest.mark.parametrize(("response", "message"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_responses_are_rejected_with_their_position(
    response: tuple[bytes, str], message: str
) -> None:
    """Each error names its position, and sizes in the response allocate no memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ResponseDecodingError, match=message):
            decode_response(*response)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
