"""The server's direction: decoding of requests, encoding of responses."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from constructs_triton_client import RequestedOutput
from constructs_triton_client.wire import (
    EncodedResponse,
    InferenceRequest,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from constructs_triton_client.wire.content_type import BINARY_CONTENT_TYPE, JSON_CONTENT_TYPE
from constructs_triton_client.wire.requests import encode_raw_request
from constructs_triton_core.errors import RequestEncodingError, ResponseDecodingError


def request(**members: Any) -> bytes:
    return json.dumps({"inputs": []} | members).encode()


@pytest.mark.parametrize("in_binary", [True, False])
def test_request_is_decoded(in_binary: bool) -> None:
    """A decoded request has the inputs, outputs, parameters and id of the encoded one."""
    encoded = encode_request(
        MappingProxyType({"X": np.array([[1, 2]], "i4"), "T": np.array([b"a", "ü"], object)}),
        outputs=["Y"],
        binary=in_binary,
        id="7",
        priority=1,
    )
    decoded = decode_request(encoded.body, encoded.content_type)
    assert isinstance(decoded, InferenceRequest)
    assert decoded.inputs["X"].tolist() == [[1, 2]]
    assert decoded.inputs["T"].tolist() == [b"a", "ü".encode()]
    assert decoded.outputs == [{"name": "Y", "parameters": {"binary_data": in_binary}}]
    assert (decoded.parameters, decoded.id, decoded.raw) == ({"priority": 1}, "7", None)


def test_request_may_omit_everything_but_inputs() -> None:
    """Outputs, parameters and id are optional."""
    decoded = decode_request(request(), JSON_CONTENT_TYPE)
    assert decoded == InferenceRequest({}, [], {}, "")


def test_raw_request_has_only_bytes() -> None:
    """A request with a header size of 0 has no inputs, and all of its body is raw."""
    encoded = encode_raw_request(b"jpeg")
    decoded = decode_request(encoded.body, encoded.content_type)
    assert (decoded.inputs, decoded.raw) == ({}, b"jpeg")


EMPTY = {"name": "X", "datatype": "INT8", "shape": [0], "data": []}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "must be a JSON object, got list"),
        (b"{}", "JSON: inputs must be a list, got None"),
        (request(inputs=[1]), "input 0: must be a JSON object, got 1"),
        (
            request(inputs=[{"name": "X", "datatype": "FP8"}]),
            'input "X": datatype must be one of KServe v2',
        ),
        (request(inputs=[EMPTY] * 2), 'input "X": occurs more than once'),
        (request(outputs={}), "JSON: outputs must be a list, got {}"),
        (request(outputs=None), "JSON: outputs must be a list, got None"),
        (request(outputs=["Y"]), "output 0: must be a JSON object, got 'Y'"),
        (request(outputs=[{"name": "Y"}, {}]), "output 1: must have a name"),
        (request(outputs=[{"name": 1}]), "JSON: name must be a string, got 1"),
        (
            request(outputs=[{"name": "Y", "parameters": []}]),
            r"JSON: parameters must be .* object, got \[\]",
        ),
        (request(parameters=[]), "JSON: parameters must be a JSON object"),
        (request(id=1), "JSON: id must be a string, got 1"),
    ],
)
def test_malformed_requests_are_rejected(body: bytes, message: str) -> None:
    """Each error names the part of the request."""
    with pytest.raises(ResponseDecodingError, match=message) as caught:
        decode_request(body, JSON_CONTENT_TYPE)
    assert str(caught.value).endswith(
        "; the body is corrupt or incomplete, so send the request again"
    )


def test_sizes_of_a_request_are_checked() -> None:
    """A header beyond the body and bytes that belong to no input are errors."""
    with pytest.raises(ResponseDecodingError, match="at most the size of the body, 2 bytes, got 3"):
        decode_request(b"{}", f"{BINARY_CONTENT_TYPE};json-header-size=3")
    body = request()
    with pytest.raises(
        ResponseDecodingError, match="the last bytes belong to no input, got 1 bytes"
    ):
        decode_request(body + b"x", f"{BINARY_CONTENT_TYPE};json-header-size={len(body)}")


@pytest.mark.parametrize(
    ("outputs", "parameters", "expected"),
    [
        ([], None, False),
        ([], {"binary_data_output": True}, True),
        ([{"name": "Y"}], {"binary_data_output": True}, True),
        (
            [{"name": "Y", "parameters": {"binary_data": False}}],
            {"binary_data_output": True},
            False,
        ),
        ([{"name": "Y", "parameters": {"binary_data": True}}], None, True),
        ([{"name": "Z", "parameters": {"binary_data": True}}], None, False),
    ],
)
def test_format_of_an_output(outputs: Any, parameters: Any, expected: bool) -> None:
    """An output's own parameter decides its format, else that of the request, else JSON."""
    assert InferenceRequest({}, outputs, parameters).is_binary_output("Y") is expected


def test_response_has_the_requested_formats() -> None:
    """Each output has the format of the request,
    and without binary outputs the response is JSON.
    """
    outputs = {"Y": np.array([1], "u1"), "Z": np.array([2], "u1")}
    encoded = encode_request({}, outputs=["Y", RequestedOutput("Z", binary_data=False)], id="7")
    response = encode_response(outputs, request=decode_request(encoded.body, encoded.content_type))
    assert response.body.endswith(b"}\x01")
    result = decode_response(response.body, response.content_type)
    assert ({name: array.tolist() for name, array in result.items()}) == {"Y": [1], "Z": [2]}
    assert result.id == "7"
    assert (result.model_name, result.model_version) == ("model", "1")
    in_json = encode_response(outputs, request=InferenceRequest({}))
    assert isinstance(in_json, EncodedResponse)
    assert in_json.content_type == JSON_CONTENT_TYPE
    assert b'"id"' not in in_json.body
    without_request = encode_response(outputs, model_name="m", model_version="2")
    assert without_request.body.endswith(b"}\x01\x02")
    assert json.loads(without_request.body[:-2])["model_name"] == "m"


def test_response_that_cannot_be_encoded_is_rejected() -> None:
    """An array without a datatype and a name that is not a string are errors."""
    with pytest.raises(
        RequestEncodingError, match='output "Y": Triton has no datatype for dtype complex64'
    ):
        encode_response({"Y": np.zeros(1, "c8")})
    with pytest.raises(
        RequestEncodingError, match="response: a name cannot be written as JSON, got "
    ):
        encode_response({}, model_name=b"m")  # type: ignore[arg-type]  # the mistake under test
