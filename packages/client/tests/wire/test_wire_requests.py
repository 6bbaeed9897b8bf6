"""Encoding of requests: copies, options and rejected arguments."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from constructs_triton_client import RequestedOutput, SequencePosition
from constructs_triton_client.wire import decode_request, encode_request
from constructs_triton_client.wire.requests import encode_raw_request
from constructs_triton_core.errors import RequestEncodingError


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_contiguous_arrays_are_copied_once_into_the_body(dtype: Any) -> None:
    """Encoding allocates the body and little else."""
    array = np.zeros((4, 3, 224, 224), dtype=dtype)
    tracemalloc.start()
    request = encode_request({"X": array})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(request.body) <= peak < len(request.body) + 50_000


def test_header_of_a_full_request() -> None:
    """Every option is written where the protocol defines it, and absent options are not written."""
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
        "inputs": [
            {
                "name": "X",
                "shape": [1, 2],
                "datatype": "FP32",
                "parameters": {"binary_data_size": 8},
            }
        ],
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


def test_output_format_follows_the_request() -> None:
    """Outputs are requested in the format of the inputs, unless binary_output says otherwise."""
    inputs = {"X": np.ones(1, dtype="i4")}
    assert b"binary_data_output" not in encode_request(inputs, binary=False).body
    assert (
        b'"binary_data_output":true'
        in encode_request(inputs, binary=False, binary_output=True).body
    )


def test_any_byte_order_and_layout_is_encoded() -> None:
    """Big-endian and Fortran-ordered arrays are sent as little-endian rows."""
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    request = encode_request({"X": array})
    assert request.body[request.header_size :] == np.arange(6, dtype="<i4").tobytes()


def test_bit_patterns_become_bf16_only_when_declared() -> None:
    """A uint16 array is BF16 if the caller declares it, and UINT16 otherwise."""
    bits = np.array([0x3F80], dtype="u2")
    named = encode_request({"X": bits}, datatypes={"X": "BF16"})
    assert decode_request(named.body, named.content_type).inputs["X"].astype("f4").tolist() == [1.0]
    assert b'"UINT16"' in encode_request({"X": bits}).body


def test_raw_request_is_only_the_bytes() -> None:
    """A raw request has no JSON: the body is the tensor, and the header size is 0."""
    request = encode_raw_request(np.array([1, 2], dtype="<u2"))
    assert request.body == b"\x01\x00\x02\x00"
    assert request.content_type.endswith("json-header-size=0")
    assert encode_raw_request(b"jpeg").body == b"jpeg"


ONES = {"X": np.ones(1)}
HALVES = np.array([1.0, 2.0], dtype=ml_dtypes.bfloat16)
MASKED = np.ma.masked_less(np.zeros(2, np.float32), 1)  # type: ignore[no-untyped-call]
NOT_JSON = "a name, id or parameter cannot be written as JSON"


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (
            {"X": [1.0]},
            {},
            'input "X": must be a NumPy array, got list; use numpy.asarray with a dtype',
        ),
        ({"X": "hi"}, {}, r"got str; use numpy.asarray\(\[VALUE\], dtype=object\), and the"),
        (
            {"X": np.zeros(1, dtype="c8")},
            {},
            'input "X": Triton has no datatype for dtype complex64',
        ),
        ({"X": np.zeros(1, dtype="M8[s]")}, {}, "no datatype for dtype datetime64"),
        (
            {"X": MASKED},
            {},
            r'input "X": must have a value for each element, got a masked array; send array.filled',
        ),
        ({"X": np.array([b"a", 7], object)}, {}, 'input "X" element 1: .*got int'),
        ({"X": np.array(["\ud800"], object)}, {}, 'input "X": a string must be valid Unicode'),
        (
            {"X": np.zeros(1, "f2")},
            {"binary": False},
            "accepts FP16 in binary only; remove binary=False",
        ),
        ({"X": HALVES}, {"binary": False}, "accepts BF16 in binary only"),
        ({"X": np.array([1, np.nan])}, {"binary": False}, 'input "X" element 1: .*got nan'),
        (
            {"X": np.array([b"\xff"], object)},
            {"binary": False},
            "0: a string in JSON must be valid UTF-8",
        ),
        (
            ONES,
            {"datatypes": {"X": "FP32"}},
            r"datatype FP32 does not match dtype float64 \(FP64\)",
        ),
        (
            ONES,
            {"datatypes": {"X": "BF16"}},
            r"remove it, or for BF16 .* astype\(ml_dtypes.bfloat16\)",
        ),
        (ONES, {"datatypes": {"Z": "BF16"}}, r'datatypes\["Z"\]: there is no such input, got "X"'),
        (ONES, {"parameters": {"t": float("nan")}}, NOT_JSON),
        (ONES, {"parameters": {"t": [1]}}, r"got 't' with \[1\]; convert it"),
        (ONES, {"parameters": {1: 1}}, "a name must be str"),
        (ONES, {"priority": np.int64(1)}, NOT_JSON),
        (ONES, {"outputs": "OUTPUT"}, r"outputs: must be a list .*got 'OUTPUT'; write \[\"OUTPUT"),
        (ONES, {"outputs": [["Y"]]}, r"outputs: must be a list of names"),
        ({1: np.ones(1)}, {}, "inputs: must map names to arrays"),
        ("X", {}, "got 'X'; pass a dict .*, and to infer_many a list of such dicts"),
        (np.ones(1), {}, r"inputs: must map names to arrays, got array\(\[1"),
    ],
)
def test_invalid_arguments_are_rejected_by_name(
    inputs: Any, options: dict[str, Any], message: str
) -> None:
    """The error names the input, the element and the value."""
    with pytest.raises(RequestEncodingError, match=message):
        encode_request(inputs, **options)


def test_json_of_kserve_is_rewritten_as_arrays() -> None:
    """The dict that the error shows is accepted, and has the names, dtypes,
    shapes and data of the JSON.
    """
    x = {"name": "X", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    text = {"name": "T", "datatype": "BYTES", "shape": [1], "data": ["hi"]}
    with pytest.raises(RequestEncodingError, match="inputs: must map names to arrays") as refused:
        encode_request({"id": "1", "inputs": [x, text]})  # type: ignore[dict-item]
    shown = str(refused.value).partition("such as ")[2].partition(", and to infer_many")[0]
    arrays = eval(shown, {"numpy": np})
    assert (arrays["X"].dtype, arrays["X"].tolist()) == (np.float32, [[1, 2, 3, 4]])
    assert arrays["T"].tolist() == ["hi"]
    encode_request(arrays)


@pytest.mark.parametrize("entry", [{}, {"name": "X", "datatype": [1], "data": [0] * 1000}])
def test_any_json_in_place_of_inputs_is_an_error(entry: Any) -> None:
    """Members may be missing or wrong, and long data are not printed."""
    with pytest.raises(RequestEncodingError, match=r"float32.*reshape") as refused:
        encode_request({"inputs": [entry]})  # type: ignore[dict-item]
    assert len(str(refused.value)) < 300


def test_sequence_id_must_not_be_empty() -> None:
    """Triton reads the ids 0 and "" as no sequence, so both raise an error."""
    for empty in (0, ""):
        with pytest.raises(RequestEncodingError, match="sequence id: must not be 0 or empty"):
            SequencePosition(empty)
    assert SequencePosition(1).id == 1


def test_minimal_request_has_no_options() -> None:
    """Without options the header has the inputs, and asks for all outputs in binary."""
    request = encode_request({"X": np.ones(1, dtype="f4")})
    assert json.loads(request.body[: request.header_size]) == {
        "inputs": [
            {"name": "X", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}
        ],
        "parameters": {"binary_data_output": True},
    }
    assert encode_request({}, binary=False).body == b'{"inputs":[]}'
    assert encode_request({}).header_size is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"priority": 1}, {"priority": 1}),
        ({"timeout_microseconds": 0}, {"timeout": 0}),
        (
            {"parameters": {"a": 1, "b": 0.5, "c": True, "d": "x"}},
            {"a": 1, "b": 0.5, "c": True, "d": "x"},
        ),
        ({"parameters": {"tritonic": 1}}, {"tritonic": 1}),
        (
            {"sequence": SequencePosition("s", end=True)},
            {"sequence_id": "s", "sequence_start": False, "sequence_end": True},
        ),
        ({"outputs": ["Y"]}, None),
        ({"outputs": []}, None),
    ],
)
def test_parameters_of_a_request(options: dict[str, Any], expected: Any) -> None:
    """Each option is one request parameter, and the output format is none
    when outputs are listed.
    """
    body = encode_request({"X": np.ones(1)}, binary=False, **options).body
    assert json.loads(body).get("parameters") == expected


def test_requested_outputs() -> None:
    """An output is a name in the format of the request,
    or a RequestedOutput with its own format.
    """
    assert RequestedOutput("Y").to_entry() == {"name": "Y", "parameters": {"binary_data": True}}
    body = encode_request({}, binary=False, outputs=["Y", RequestedOutput("Z", class_count=1)]).body
    assert json.loads(body)["outputs"] == [
        {"name": "Y", "parameters": {"binary_data": False}},
        {"name": "Z", "parameters": {"classification": 1, "binary_data": True}},
    ]


def test_payloads_follow_the_header_in_order() -> None:
    """The tensors' bytes are in the order of the inputs, after the header."""
    inputs = {"A": np.array([1], "u1"), "B": np.array([b"xy", "z"], object), "C": np.array([True])}
    request = encode_request(inputs)
    assert request.body[request.header_size :] == b"\x01\x02\0\0\0xy\x01\0\0\0z\x01"
    assert request.content_type == (
        f"application/vnd.sagemaker-triton.binary+json;json-header-size={request.header_size}"
    )
    assert encode_request(inputs, binary=False).content_type == "application/json"


@pytest.mark.parametrize(
    "reserved",
    ["sequence_id", "sequence_start", "sequence_end", "timeout", "headers", "priority", "triton_x"],
)
def test_reserved_parameters_are_rejected(reserved: str) -> None:
    """The parameters that Triton defines cannot be set by name, as in tritonclient."""
    with pytest.raises(
        RequestEncodingError, match=f"'{reserved}' is reserved by Triton; use the argument"
    ):
        encode_request({}, parameters={reserved: 1})


def test_raw_request_of_strings_is_rejected() -> None:
    """A raw request has no element lengths, so an array of strings cannot be sent."""
    with pytest.raises(
        RequestEncodingError, match="raw input: must be bytes or an array of numbers"
    ):
        encode_raw_request(np.array([b"a"], dtype=object))
    with pytest.raises(RequestEncodingError, match="raw input: must be a NumPy array, got list"):
        encode_raw_request([1])  # type: ignore[arg-type]  # the mistake under test
    assert encode_raw_request(b"jpeg").header_size == 0


def test_binary_bool_and_int_headers_are_cached_apart() -> None:
    """The cache of headers tells 1 and True apart, which Python regards as equal."""
    assert (
        b'"classification":1,'
        in encode_request({}, outputs=[RequestedOutput("Y", class_count=1)]).body
    )
    with_bool = encode_request({}, outputs=[RequestedOutput("Y", binary_data=True)]).body
    with_int = encode_request({}, outputs=[RequestedOutput("Y", binary_data=1)]).body  # type: ignore[arg-type]
    assert (b'"binary_data":true' in with_bool, with_int) == (True, with_bool)


def test_bfloat16_arrays_are_bf16() -> None:
    """An array of ml_dtypes.bfloat16 is sent as BF16 without a declaration."""
    request = encode_request({"X": HALVES})
    assert b'"BF16"' in request.body
    assert request.body[request.header_size :] == b"\x80\x3f\x00\x40"


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has this dtype")
def test_strings_of_any_length_are_bytes_tensors() -> None:
    """NumPy 2's dtype for strings is encoded as an array of str is."""
    values = [["a"], ["größer"]]
    string_dtype: Any = np.dtypes
    variable: Any = np.array(values, dtype=string_dtype.StringDType())
    wanted = encode_request({"X": np.array(values, object)})
    assert encode_request({"X": variable}).body == wanted.body
