"""Requests: what is refused, what is copied, and the options beside the tensors."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from constructs_triton.errors import RequestEncodingError
from constructs_triton.wire import (
    RequestedOutput,
    SequencePosition,
    decode_request,
    encode_raw_request,
    encode_request,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_contiguous_arrays_are_copied_once_into_the_body(dtype: Any) -> None:
    """Encoding allocates the body and next to nothing beside it."""
    array = np.zeros((4, 3, 224, 224), dtype=dtype)
    tracemalloc.start()
    request = encode_request({"X": array})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(request.body) <= peak < len(request.body) + 50_000


def test_header_of_a_full_request() -> None:
    """Every option stands where the protocol wants it, and absent ones are not written."""
    request = encode_request(
        {"X": np.ones((1, 2), dtype="f4")},
        outputs=["Y", RequestedOutput("Z", binary_data=False, class_count=3)],
        id="7",
        sequence=SequencePosition(5, start=True),
        priority=1,
        timeout_microseconds=10,
        parameters={"beam": 4},
    )
    assert json.loads(request.body[: request.header_size]) == {
        "id": "7",
        "inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}],
        "outputs": [
            {"name": "Y", "parameters": {"binary_data": True}},
            {"name": "Z", "parameters": {"classification": 3, "binary_data": False}},
        ],
        "parameters": {
            "sequence_id": 5,
            "sequence_start": True,
            "sequence_end": False,
            "priority": 1,
            "timeout": 10,
            "beam": 4,
        },
    }


def test_json_request_asks_for_json_unless_told_otherwise() -> None:
    """The format of the answer follows that of the request, or binary_output."""
    inputs = {"X": np.ones(1, dtype="i4")}
    assert b"binary_data_output" not in encode_request(inputs, binary=False).body
    assert b'"binary_data_output":true' in encode_request(inputs, binary=False, binary_output=True).body


def test_byte_order_and_layout_do_not_matter() -> None:
    """Big-endian and Fortran-ordered arrays go out as little-endian rows."""
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    request = encode_request({"X": array})
    assert request.body[request.header_size :] == np.arange(6, dtype="<i4").tobytes()


def test_bit_patterns_become_bf16_only_when_named() -> None:
    """A uint16 array is BF16 if the caller says so, and UINT16 otherwise."""
    bits = np.array([0x3F80], dtype="u2")
    named = encode_request({"X": bits}, datatypes={"X": "BF16"})
    assert decode_request(named.body, named.content_type).inputs["X"].astype("f4").tolist() == [1.0]
    assert b'"UINT16"' in encode_request({"X": bits}).body


def test_raw_request_is_the_bytes_alone() -> None:
    """Without JSON the body is the tensor, and the content type says zero."""
    request = encode_raw_request(np.array([1, 2], dtype="<u2"))
    assert request.body == b"\x01\x00\x02\x00"
    assert request.content_type.endswith("json-header-size=0")
    assert encode_raw_request(b"jpeg").body == b"jpeg"


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ({"X": [1.0]}, {}, 'input "X": must be a NumPy array, got list'),
        ({"X": np.zeros(1, dtype="c8")}, {}, 'input "X": .*got dtype complex64'),
        ({"X": np.zeros(1, dtype="M8[s]")}, {}, "got dtype datetime64"),
        ({"X": np.array([b"a", 7], dtype=object)}, {}, 'input "X" element 1: .*got int'),
        ({"X": np.array(["\ud800"], dtype=object)}, {}, 'input "X": a string must be valid Unicode'),
        ({"X": np.zeros(1, dtype="f2")}, {"binary": False}, "takes FP16 in binary only"),
        ({"X": np.array([1, np.nan])}, {"binary": False}, 'input "X" element 1: .*got nan'),
        (
            {"X": np.array([b"\xff"], dtype=object)},
            {"binary": False},
            "element 0: JSON takes only valid UTF-8",
        ),
        ({"X": np.ones(1)}, {"datatypes": {"X": "FP32"}}, "for datatype FP32, got dtype float64"),
        ({"X": np.ones(1)}, {"datatypes": {"Z": "BF16"}}, r'datatypes\["Z"\]: no such input'),
        ({"X": np.ones(1)}, {"parameters": {"priority": 1}}, "'priority'; use the argument"),
        ({"X": np.ones(1)}, {"parameters": {"triton_x": 1}}, "'triton_x'"),
        ({"X": np.ones(1)}, {"parameters": {"t": float("nan")}}, "a name, id or parameter cannot be JSON"),
        ({"X": np.ones(1)}, {"parameters": {"t": [1]}}, r"got 't' with \[1\]; convert it"),
        ({"X": np.ones(1)}, {"parameters": {1: 1}}, "a name must be str"),
        ({"X": np.ones(1)}, {"priority": np.int64(1)}, "a name, id or parameter cannot be JSON"),
        ({"X": np.ones(1)}, {"outputs": "OUTPUT"}, r"outputs: must be a list .*got 'OUTPUT'; .*\[\"OUTPUT"),
        ({"X": np.ones(1)}, {"outputs": [["Y"]]}, r"outputs: must be a list of names"),
        ({1: np.ones(1)}, {}, "inputs: must map names to arrays"),
        (np.ones(1), {}, r"inputs: must map names to arrays, got array\(\[1"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(inputs: Any, options: dict[str, Any], message: str) -> None:
    """The error says which input, which element, and what was there."""
    with pytest.raises(RequestEncodingError, match=message):
        encode_request(inputs, **options)


def test_sequence_zero_is_refused() -> None:
    """Triton reads sequence 0 as none, so it cannot be asked for by accident."""
    with pytest.raises(RequestEncodingError, match="sequence id"):
        SequencePosition(0)
