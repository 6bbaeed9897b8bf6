"""Strict JSON: no NaN, no Infinity, valid UTF-8, and every fault located by its byte."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from constructs_triton.errors import ResponseDecodingError

__all__ = ["format_json", "measure_json", "parse_json"]

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
_NOT_FINITE = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)', re.DOTALL)
_MEND = "the response was cut off or is corrupt"


def format_json(value: object) -> bytes:
    """Compact ASCII JSON; ``ValueError`` where a number is not finite."""
    return _format(value).encode("ascii")


def parse_json(data: bytes | memoryview) -> dict[str, Any]:
    """The JSON object that ``data`` is; whatever else it may be raises ``ResponseDecodingError``."""
    text = _decode_text(bytes(data))
    try:
        value = _parse(text)
    except json.JSONDecodeError as error:
        raise _fault(len(text[: error.pos].encode()), f"is not JSON, {error.msg.lower()}") from None
    except _NotFiniteError:
        raise _locate_not_finite(text) from None
    except (ValueError, RecursionError) as error:  # digits beyond Python's limit, or nesting too deep
        raise _fault(0, f"is not usable JSON, {type(error).__name__}: {str(error)[:80]}") from None
    if not isinstance(value, dict):
        raise _fault(0, f"must be a JSON object, got {type(value).__name__}")
    return value


def measure_json(data: bytes) -> int:
    """Bytes of the JSON object at the front of ``data``, for a body whose content type was lost.

    An object that never closes counts as the whole of ``data``, and fails when it is parsed.
    """
    depth = 0
    for token in _TOKEN.finditer(data):
        depth += {b"{": 1, b"}": -1}.get(token.group(), 0)
        if depth <= 0:
            return token.end()
    return len(data)


class _NotFiniteError(Exception):
    pass


def _refuse_constant(_: str) -> NoReturn:
    raise _NotFiniteError


# Made once: json.dumps and json.loads make theirs anew for each call that is not by their defaults.
_format = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_parse = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _fault(error.start, f"is not valid UTF-8, got 0x{data[error.start]:02x}") from None


def _locate_not_finite(text: str) -> ResponseDecodingError:
    found = next((match for match in _NOT_FINITE.finditer(text) if match.group(1)), None)
    byte, literal = (len(text[: found.start()].encode()), found.group(1)) if found else (0, "NaN")
    return ResponseDecodingError(
        f"response JSON at byte {byte}: a number must be finite, got {literal}; "
        "ask for the output in binary, which carries it exactly"
    )


def _fault(byte: int, what: str) -> ResponseDecodingError:
    return ResponseDecodingError(f"response JSON at byte {byte}: {what}; {_MEND}")
