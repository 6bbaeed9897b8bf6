"""The reader of SageMaker's data capture: bodies as arrays, and what cannot be read."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from constructs_triton_client.wire import encode_request, encode_response
from constructs_triton_client.wire.requests import encode_raw_request
from constructs_triton_client.wire.server_side import InferenceRequest
from constructs_triton_core.errors import InvalidValueError, ResponseDecodingError
from constructs_triton_tools.operations import read_capture

#: The form of SageMaker's developer guide, "Capture data from real-time endpoint".
PUBLISHED = (
    '{"captureData":{"endpointInput":{"observedContentType":"text/csv","mode":"INPUT",'
    '"data":"132,25,113.2","encoding":"CSV"},"endpointOutput":{"observedContentType":"text/csv; '
    'charset=utf-8","mode":"OUTPUT","data":"0.01076381653547287","encoding":"CSV"}},'
    '"eventMetadata":{"eventId":"cca1e6f2-08f8-4ba2-b4d4-1d4b5dbe6fd4",'
    '"inferenceTime":"2022-02-14T17:25:49Z"},"eventVersion":"0"}'
)
ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)
REQUEST = encode_request({"x": ARRAY, "größe": np.array([1], np.int8)})


def side(body: bytes, content_type: str, encoding: str = "BASE64") -> dict[str, str]:
    data = base64.b64encode(body).decode() if encoding == "BASE64" else body.decode()
    return {
        "observedContentType": content_type,
        "mode": "INPUT",
        "data": data,
        "encoding": encoding,
    }


def line(**sides: Any) -> str:
    return json.dumps(
        {"captureData": sides, "eventMetadata": {"eventId": "1", "inferenceId": "mine"}}
    )


@pytest.mark.parametrize(
    "content_type", [REQUEST.content_type, REQUEST.content_type.partition(";")[0]]
)
def test_binary_request_becomes_arrays(content_type: str) -> None:
    """A binary body is read by the size in its content type,
    or without it by the end of its JSON.
    """
    (found,) = read_capture([line(endpointInput=side(bytes(REQUEST.body), content_type))])
    request = found.decode_request()
    np.testing.assert_array_equal(request.inputs["x"], ARRAY)
    assert request.datatypes == {"x": "FP32", "größe": "INT8"}
    assert (found.event_id, found.inference_id, found.time) == ("1", "mine", None)


def test_response_becomes_arrays() -> None:
    """Responses in JSON and in binary have the same arrays."""
    for binary in (True, False):
        response = encode_response({"y": ARRAY}, request=None if binary else InferenceRequest({}))
        encoding = "BASE64" if binary else "JSON"
        (found,) = read_capture(
            [line(endpointOutput=side(response.body, response.content_type, encoding))]
        )
        np.testing.assert_array_equal(found.decode_response()["y"], ARRAY)


def test_raw_request_keeps_its_bytes() -> None:
    """A request without JSON has no names; its bytes are the input."""
    raw = encode_raw_request(ARRAY)
    (found,) = read_capture([line(endpointInput=side(bytes(raw.body), raw.content_type))])
    assert found.decode_request().raw == ARRAY.tobytes()


def test_published_line_is_read() -> None:
    """A line of another framework has its metadata; its body is not an inference request."""
    (found,) = read_capture([PUBLISHED])
    assert f"{found.time:%Y-%m-%d %H:%M:%S}" == "2022-02-14 17:25:49"
    with pytest.raises(ResponseDecodingError):
        found.decode_request()


def test_error_of_the_model_is_an_error() -> None:
    """An answer with an error has no outputs, and says why."""
    (found,) = read_capture(
        [line(endpointOutput=side(b'{"error": "no room"}', "application/json", "JSON"))]
    )
    with pytest.raises(ResponseDecodingError, match="no room"):
        found.decode_response()
    with pytest.raises(InvalidValueError, match="capture:1: has no request; capture both"):
        found.decode_request()


def test_half_written_last_line_is_ignored() -> None:
    """SageMaker may still be writing the last line; the same line before others is damage."""
    half = PUBLISHED[:-40]
    left_out: list[str] = []
    found = list(read_capture([PUBLISHED, "", half], "today.jsonl", left_out=left_out.append))
    assert (len(found), left_out) == (1, ["today.jsonl:3"])
    with pytest.raises(
        InvalidValueError, match=r"^today\.jsonl:1: must be a line of SageMaker's data capture"
    ):
        list(read_capture([half, PUBLISHED], "today.jsonl"))


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"captureData": {"endpointInput": {}}}', '{"captureData": 3}']
)
def test_other_json_is_an_error(text: str) -> None:
    """Lines that are no capture are refused with file and line."""
    with pytest.raises(InvalidValueError, match="capture:2: must be a line"):
        list(read_capture([PUBLISHED, text, PUBLISHED]))


def test_damaged_base64_is_an_error() -> None:
    """A body that is not BASE64 is damage, not an empty request."""
    broken = line(endpointInput={**side(b"x", "a/b"), "data": "?"})
    with pytest.raises(InvalidValueError, match="not BASE64"):
        list(read_capture([broken]))
