"""Triton's generate extension: one flat JSON object as request, events of flat JSON as response."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from constructs_triton_client.errors import InvocationError, RequestEncodingError, ResponseDecodingError
from constructs_triton_client.server_sent_events import iterate_events
from constructs_triton_client.spelling import escape_surrogates
from constructs_triton_client.wire import EncodedRequest

__all__ = ["encode_generation", "read_generation"]


def encode_generation(fields: Mapping[str, Any]) -> EncodedRequest:
    """Encode a generate request; arrays become lists, and ``bytes`` are decoded as UTF-8.

    Raises:
        RequestEncodingError: a field has no JSON form.
    """
    try:
        text = json.dumps(dict(fields), default=_to_json, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise RequestEncodingError(
            f"generate request: a field cannot be written as JSON, got {error}; "
            "pass strings, finite numbers, lists or arrays"
        ) from None
    return EncodedRequest(text.encode("ascii"), None)


def _to_json(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8")
    raise TypeError(f"{type(value).__name__} {value!r:.40}")


def read_generation(parts: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each event.

    Raises:
        InvocationError: an event reports an error of the model.
        ResponseDecodingError: an event is cut off, is not UTF-8 or is not a JSON object.
    """
    for index, data in enumerate(iterate_events(parts)):
        event = _parse(index, data)
        if "error" in event:
            said = escape_surrogates(event["error"])
            raise InvocationError(
                f"event {index}: the model failed, got {said:.500}; see the endpoint's log",
                model_message=said,
            )
        yield event


def _parse(index: int, data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise ResponseDecodingError(
            f"event {index}: must be a JSON object, got {data[:80]!r}; "
            "set SAGEMAKER_TRITON_INFERENCE_TYPE=generate_stream on the endpoint"
        )
    return event
