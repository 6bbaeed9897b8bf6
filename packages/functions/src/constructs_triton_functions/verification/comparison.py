"""Compares a response of an endpoint with the outputs that were recorded.

Only the standard library is used: the code runs in a Lambda function without NumPy.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["differences"]

_HEADER_SIZE = re.compile(r"json-header-size=(\d+)")
#: The codes of ``struct`` for Triton's data types. BF16 is the upper half of a float.
_FORMATS = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "FP16": "e",
    "FP32": "f",
    "FP64": "d",
    "BF16": "H",
}


def differences(body: bytes, content_type: str, expected: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how a response differs from the expected outputs, one sentence for each output.

    Each expected output has ``name``, ``datatype``, ``shape``, ``content`` (its bytes on the wire
    in Base64), ``absolute_tolerance`` and ``relative_tolerance``. A value is equal if it differs by
    at most the absolute tolerance plus the relative tolerance times the expected value.
    """
    try:
        outputs = _read_response(body, content_type)
    except (ValueError, KeyError, TypeError, struct.error) as error:
        return [f"the response cannot be read ({type(error).__name__}: {error})"]
    found = (_difference(outputs.get(each["name"]), each) for each in expected)
    return [each for each in found if each is not None]


def _difference(output: Mapping[str, Any] | None, expected: Mapping[str, Any]) -> str | None:
    name = expected["name"]
    if output is None:
        return f"output {name} is missing"
    for member in ("datatype", "shape"):
        if output[member] != expected[member]:
            return f"output {name}: {member} must be {expected[member]}, got {output[member]}"
    wanted = _values(base64.b64decode(expected["content"]), expected["datatype"])
    return _compare(name, output["values"], wanted, expected)


def _compare(
    name: str, got: Sequence[Any], wanted: Sequence[Any], expected: Mapping[str, Any]
) -> str | None:
    if len(got) != len(wanted):
        return f"output {name}: must have {len(wanted)} values, got {len(got)}"
    absolute, relative = expected["absolute_tolerance"], expected["relative_tolerance"]
    wrong = [
        number
        for number, (one, other) in enumerate(zip(got, wanted, strict=True))
        if one != other and not _is_close(one, other, absolute, relative)
    ]
    if not wrong:
        return None
    first = wrong[0]
    return (
        f"output {name}: {len(wrong)} of {len(wanted)} values differ, the first at {first}: "
        f"must be {wanted[first]!r}, got {got[first]!r} "
        f"(tolerance {absolute:g} + {relative:g} times the value)"
    )


def _is_close(got: Any, wanted: Any, absolute: float, relative: float) -> bool:
    if isinstance(wanted, bytes) or isinstance(got, bytes):
        return False
    if not (math.isfinite(wanted) and math.isfinite(got)):
        return math.isnan(wanted) and math.isnan(got)
    return bool(abs(got - wanted) <= absolute + relative * abs(wanted))


# Responses.


def _read_response(body: bytes, content_type: str) -> dict[str, dict[str, Any]]:
    size = _HEADER_SIZE.search(content_type)
    length = len(body) if size is None else int(size[1])
    header, position = json.loads(body[:length]), length
    outputs = {}
    for output in header["outputs"]:
        count = output.get("parameters", {}).get("binary_data_size")
        if count is None:
            values = [_from_json(each, output["datatype"]) for each in _flat(output["data"])]
        else:
            if position + count > len(body):
                raise ValueError(f"output {output['name']} ends after the response")
            values = _values(body[position : position + count], output["datatype"])
            position += count
        outputs[output["name"]] = {
            "datatype": output["datatype"],
            "shape": [int(each) for each in output["shape"]],
            "values": values,
        }
    return outputs


def _values(content: bytes, datatype: str) -> list[Any]:
    if datatype == "BYTES":
        return _byte_strings(content)
    code = _FORMATS[datatype]
    values = list(struct.unpack(f"<{len(content) // struct.calcsize(code)}{code}", content))
    if datatype == "BF16":
        return [struct.unpack("<f", struct.pack("<I", each << 16))[0] for each in values]
    return values


def _byte_strings(content: bytes) -> list[bytes]:
    found, position = [], 0
    while position < len(content):
        (length,) = struct.unpack_from("<I", content, position)
        position += 4
        if position + length > len(content):
            raise ValueError("a byte string ends after its tensor")
        found.append(content[position : position + length])
        position += length
    return found


def _flat(data: Any) -> list[Any]:
    if not isinstance(data, list):
        return [data]
    return [value for each in data for value in _flat(each)]


def _from_json(value: Any, datatype: str) -> Any:
    return value.encode() if datatype == "BYTES" and isinstance(value, str) else value
