"""Triton's generate extension: flat JSON in, events of flat JSON out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from constructs_triton.client.server_sent_events import iterate_events
from constructs_triton.errors import InvocationError, RequestEncodingError, ResponseDecodingError
from constructs_triton.wire import EncodedRequest

__all__ = ["encode_generation", "read_generation"]


def encode_generation(fields: Mapping[str, Any]) -> EncodedRequest:
    """The request of a generating model; arrays become lists, and bytes must be UTF-8."""
    try:
        text = json.dumps(dict(fields), default=_to_json, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise RequestEncodingError(
            f"generate request: a field cannot be JSON, got {error}; use text, numbers, lists or arrays"
        ) from None
    return EncodedRequest(text.encode("ascii"), None)


def _to_json(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8")
    raise TypeError(f"{type(value).__name__} {value!r:.40}")


def read_generation(parts: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The answer of each event; one that reports an error raises ``InvocationError``."""
    for index, data in enumerate(iterate_events(parts)):
        answer = _parse(index, data)
        if "error" in answer:
            raise InvocationError(
                f"event {index}: the model failed, got {answer['error']!s:.500}; see the endpoint's log",
                model_message=str(answer["error"]),
            )
        yield answer


def _parse(index: int, data: str) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise ResponseDecodingError(
            f"event {index}: must be a JSON object, got {data[:80]!r}; the stream is corrupt"
        )
    return answer
