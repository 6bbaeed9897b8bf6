"""The JSON at the start of a request or response, and its members of known type."""

from __future__ import annotations

from typing import Any

from constructs_triton_client.wire.content_type import parse_header_size
from constructs_triton_client.wire.decoding_errors import build_decoding_error
from constructs_triton_client.wire.json_text import parse_json

__all__ = ["read_header", "read_list", "read_object", "read_string"]


def read_header(view: memoryview, content_type: str) -> tuple[dict[str, Any], int]:
    """Return the JSON object at the start of a body, and its length in bytes.

    Raises:
        ResponseDecodingError: the content type has no valid size, or there is no such object.
    """
    size = parse_header_size(content_type)
    size = len(view) if size is None else size
    if size > len(view):
        what = f"json-header-size must be at most the size of the body, {len(view)} bytes"
        raise build_decoding_error("content type", what, str(size))
    return parse_json(view[:size]), size


def read_string(header: dict[str, Any], name: str) -> str:
    """Return a string of the header; an absent one is empty."""
    value = header.get(name, "")
    if not isinstance(value, str):
        raise build_decoding_error("JSON", f"{name} must be a string", f"{value!r:.80}")
    return value


def read_object(header: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object of the header; an absent one is empty."""
    value = header.get(name, {})
    if not isinstance(value, dict):
        raise build_decoding_error("JSON", f"{name} must be a JSON object", f"{value!r:.80}")
    return value


def read_list(header: dict[str, Any], name: str) -> list[Any]:
    """Return a list of the header, which is required."""
    value = header.get(name)
    if not isinstance(value, list):
        raise build_decoding_error("JSON", f"{name} must be a list", f"{value!r:.80}")
    return value
