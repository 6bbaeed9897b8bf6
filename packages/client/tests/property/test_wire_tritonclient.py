"""The codec compared with NVIDIA's tritonclient, with generated tensors."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import ml_dtypes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from constructs_triton_client import RequestedOutput, SequencePosition
from constructs_triton_client.wire import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from constructs_triton_client.wire.content_type import parse_header_size
from constructs_triton_client.wire.requests import Parameter

# tritonclient.http imports gevent; a test below checks that gevent patches nothing.
incumbent = pytest.importorskip("tritonclient.http")

Array = NDArray[Any]

DTYPES = {"BOOL": "?", **{f"FP{8 * size}": f"f{size}" for size in (2, 4, 8)}}
DTYPES |= {f"UINT{8 * size}": f"u{size}" for size in (1, 2, 4, 8)}
DTYPES |= {f"INT{8 * size}": f"i{size}" for size in (1, 2, 4, 8)}
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12)
ELEMENTS = st.one_of(
    st.binary(max_size=300), st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
)


def fixed_tensors(datatype: str) -> st.SearchStrategy[tuple[str, Array]]:
    """Generate arrays of one datatype, some of them transposed and therefore not contiguous."""
    arrays = hnp.arrays(DTYPES[datatype], SHAPES)
    return st.tuples(st.just(datatype), st.one_of(arrays, arrays.map(lambda array: array.T)))


def half_tensors() -> st.SearchStrategy[tuple[str, Array]]:
    """Generate bfloat16 arrays of any bits."""
    return hnp.arrays("u2", SHAPES).map(lambda bits: ("BF16", bits.view(ml_dtypes.bfloat16)))


def text_tensors() -> st.SearchStrategy[tuple[str, Array]]:
    """Generate object arrays of bytes and str."""
    return hnp.arrays(object, SHAPES, elements=ELEMENTS, fill=st.nothing()).map(
        lambda array: ("BYTES", array)
    )


TENSORS = st.one_of(*map(fixed_tensors, DTYPES), half_tensors(), text_tensors())
REQUESTS = st.dictionaries(NAMES, TENSORS, min_size=1, max_size=4)

OPTIONS = st.fixed_dictionaries(
    {
        "id": st.text("abc123", max_size=4),
        "priority": st.integers(0, 5),
        "timeout": st.one_of(st.none(), st.integers(0, 10**6)),
        "sequence_id": st.one_of(st.just(0), st.integers(1, 2**40)),
    }
)


def build_incumbent(inputs: dict[str, tuple[str, Array]], *, binary: bool = True) -> list[Any]:
    """Return the same tensors in tritonclient's form."""
    tensors = []
    for name, (datatype, array) in inputs.items():
        tensor = incumbent.InferInput(name, list(array.shape), datatype)
        tensors.append(tensor.set_data_from_numpy(array, binary_data=binary))
    return tensors


def same(left: Array, right: Array) -> bool:
    """Compare all bits, so that NaN equals itself; strings are compared as UTF-8."""
    if left.dtype == object:
        encoded = [x.encode() if isinstance(x, str) else x for x in left.ravel()]
        return left.shape == right.shape and encoded == right.ravel().tolist()
    return (
        left.shape == right.shape
        and left.dtype == right.dtype
        and left.tobytes() == right.tobytes()
    )


@settings(max_examples=150, deadline=None)
@given(REQUESTS, st.lists(NAMES, max_size=3), OPTIONS)
def test_request_has_the_bytes_of_tritonclient(
    inputs: dict[str, tuple[str, Array]], outputs: list[str], options: dict[str, Any]
) -> None:
    """A binary request has the same bytes and header size as tritonclient's."""
    parameters: dict[str, Parameter] = {"temperature": 1, "tag": "x", "flag": True}
    body, header_size = incumbent.InferenceServerClient.generate_request_body(
        build_incumbent(inputs),
        [incumbent.InferRequestedOutput(name, class_count=2) for name in outputs],
        request_id=options["id"],
        sequence_id=options["sequence_id"],
        sequence_end=True,
        priority=options["priority"],
        timeout=options["timeout"],
        parameters=parameters,
    )
    sequence_id = options["sequence_id"]
    ours = encode_request(
        {name: array for name, (_, array) in inputs.items()},
        outputs=[RequestedOutput(name, class_count=2) for name in outputs],
        id=options["id"],
        sequence=SequencePosition(sequence_id, end=True) if sequence_id else None,
        priority=options["priority"],
        timeout_microseconds=options["timeout"],
        parameters=parameters,
    )
    assert ours.body == body
    assert ours.header_size == header_size


@settings(max_examples=100, deadline=None)
@given(REQUESTS)
def test_response_is_decoded_as_by_tritonclient(inputs: dict[str, tuple[str, Array]]) -> None:
    """Both parsers read identical arrays from one response."""
    arrays = {name: array for name, (_, array) in inputs.items()}
    response = encode_response(arrays)
    theirs = incumbent.InferenceServerClient.parse_response_body(
        response.body, header_length=parse_header_size(response.content_type)
    )
    ours = decode_response(response.body, response.content_type)
    assert list(ours) == list(arrays)
    for name, array in arrays.items():
        assert same(array, ours[name])
        assert same(array, theirs.as_numpy(name))


@settings(max_examples=50, deadline=None)
@given(REQUESTS)
def test_binary_request_reads_back(inputs: dict[str, tuple[str, Array]]) -> None:
    """A decoded request has the encoded arrays."""
    arrays = {name: array for name, (_, array) in inputs.items()}
    request = encode_request(arrays)
    back = decode_request(request.body, request.content_type).inputs
    assert all(same(array, back[name]) for name, array in arrays.items())


JSON_TENSORS = st.one_of(
    *(fixed_tensors(name) for name in DTYPES if not name.startswith("FP")),
    st.tuples(
        st.just("FP32"),
        hnp.arrays(
            "f4", SHAPES, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
        ),
    ),
    st.tuples(
        st.just("FP64"),
        hnp.arrays("f8", SHAPES, elements=st.floats(allow_nan=False, allow_infinity=False)),
    ),
    st.tuples(
        st.just("BYTES"),
        hnp.arrays(
            object,
            SHAPES,
            elements=st.text(st.characters(exclude_categories=["Cs"])),
            fill=st.nothing(),
        ),
    ),
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(NAMES, JSON_TENSORS, min_size=1, max_size=3))
def test_json_is_exact_and_equals_tritonclients(inputs: dict[str, tuple[str, Array]]) -> None:
    """Arrays are exact in JSON, with the same JSON values as tritonclient's."""
    arrays = {name: array for name, (_, array) in inputs.items()}
    request = encode_request(arrays, binary=False)
    assert request.header_size is None
    back = decode_request(request.body, request.content_type).inputs
    assert all(same(array, back[name]) for name, array in arrays.items())
    tensors = build_incumbent(inputs, binary=False)
    body, _ = incumbent.InferenceServerClient.generate_request_body(tensors)
    assert json.loads(request.body)["inputs"] == json.loads(body)["inputs"]


def test_gevent_patches_nothing() -> None:
    """Importing tritonclient does not patch the sockets and threads of this process."""
    monkey = import_module("gevent.monkey")

    assert not any(
        monkey.is_module_patched(name) for name in ("socket", "threading", "time", "ssl")
    )
