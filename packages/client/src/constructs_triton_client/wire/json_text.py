"""Strict JSON: no NaN, no Infinity, valid UTF-8, and errors that name the byte.

A request or response begins with it. This module also builds the errors for other invalid bytes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from constructs_triton_client.wire.content_type import parse_header_size
from constructs_triton_core.errors import ResponseDecodingError

_HINT = "the body is corrupt or incomplete, so send the request again"

# Parsed values need up to 25 times the memory of their JSON. Triton accepts requests of this size
# by default.
MAXIMUM_JSON_BYTES = 64 * 1024**2
# The possessive quantifiers (*+) read a string once, in constant memory, also if it does not end.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}]', re.DOTALL)
_NOT_FINITE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|(NaN|-?Infinity)', re.DOTALL)


def build_decoding_error(where: str, what: str, got: str = "") -> ResponseDecodingError:
    """Build the error of ``where``, a tensor or a byte; ``got`` is the value that was found,
    if it helps.
    """
    value = f", got {got:.200}" if got else ""
    return ResponseDecodingError(f"{where}: {what}{value}; {_HINT}")


def format_json(value: object) -> bytes:
    """Format compact ASCII JSON."""
    return _format(value).encode("ascii")


def parse_json(data: bytes | memoryview) -> dict[str, Any]:
    """Parse a JSON object."""
    if len(data) > MAXIMUM_JSON_BYTES:
        raise ResponseDecodingError(
            f"JSON: may have at most {MAXIMUM_JSON_BYTES} bytes, got {len(data)}; "
            "request outputs in binary with RequestedOutput(name)"
        )
    try:
        text = bytes(data).decode("utf-8")
        value = _parse(text)
    except UnicodeDecodeError as error:
        raise _error(error.start, "is not valid UTF-8", f"0x{data[error.start]:02x}") from None
    except json.JSONDecodeError as error:
        got = text[error.pos : error.pos + 40]
        what = f"is not JSON ({error.msg.lower()})"
        raise _error(len(text[: error.pos].encode()), what, got and repr(got)) from None
    except _NotFiniteError:
        raise _locate_not_finite(text) from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # more digits or deeper nesting than Python allows
        raise _error(
            0, f"cannot be parsed as JSON ({type(error).__name__}: {str(error)[:80]})"
        ) from None
    if not isinstance(value, dict):
        raise _error(0, "must be a JSON object", type(value).__name__)
    return value


def measure_json(data: bytes) -> int:
    """Return the length of the JSON object at the start of ``data``, for a body without a content
    type.

    If the object has no end in the first ``MAXIMUM_JSON_BYTES``, the length of ``data`` is
    returned; parsing it then fails.
    """
    depth = 0
    for token in _TOKEN.finditer(data, 0, MAXIMUM_JSON_BYTES):
        depth += {b"{": 1, b"}": -1}.get(token.group(), 0)
        if depth <= 0:
            return token.end()
    return len(data)


class _NotFiniteError(Exception):
    pass


def _reject_constant(_: str) -> NoReturn:
    raise _NotFiniteError


# Created once: with other than default options, json.dumps and json.loads create theirs at each
# call.
_format = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_parse = json.JSONDecoder(parse_constant=_reject_constant).decode


def _locate_not_finite(text: str) -> ResponseDecodingError:
    """Return the error about the first number that is not finite, with its place."""
    found = next((match for match in _NOT_FINITE.finditer(text) if match.group(1)), None)
    byte, literal = (len(text[: found.start()].encode()), found.group(1)) if found else (0, "NaN")
    return ResponseDecodingError(
        f"JSON at byte {byte}: a number must be finite, got {literal}; "
        "request the output in binary with RequestedOutput(name)"
    )


def _error(byte: int, what: str, got: str = "") -> ResponseDecodingError:
    return build_decoding_error(f"JSON at byte {byte}", what, got)


def read_header(view: memoryview, content_type: str) -> tuple[dict[str, Any], int]:
    """Return the JSON object at the start of a body, and its length in bytes."""
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
