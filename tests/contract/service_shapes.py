"""Checks a value against a service's model, more strictly than botocore.

botocore's validator checks members, types, required members and minima. The service models also
contain enumerations, maxima and patterns, which only the service checks; these are checked here
too. Values are those of a CloudFormation template, so a number may be written as a string, as
CloudFormation allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.model import ServiceModel, Shape

# Java's names for sets of characters, which Python's patterns do not have; those that templates
# need.
_UNICODE_PROPERTIES = {
    r"\p{ASCII}": r"\x00-\x7f",
    r"\p{Alnum}": "a-zA-Z0-9",
    r"\p{L}": r"a-zA-Z\u00c0-\u024f",
    r"\p{M}": r"\u0300-\u036f",
    r"\p{N}": "0-9",
    r"\p{P}": r"!-#%-*,-/:;?@\[-\]_{}",
    r"\p{Print}": r"\x20-\x7e",
    r"\p{S}": r"$+<=>^`|~",
    r"\p{Z}": " ",
    r"\p{Zs}": " ",
}
# A surrogate pair is a character in Java's strings, but not in Python's.
_SURROGATES = r"\uD800\uDC00-\uDBFF\uDFFF"


def check_call(service: str, operation: str, request: Any) -> list[str]:
    """Return every error that the service's model finds in a request."""
    shape = _service(service).operation_model(operation).input_shape
    assert shape is not None, f"{service}.{operation} takes nothing"
    return list(violations(request, shape, operation))


def violations(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Return the errors of a value against a shape, each beginning with its position."""
    yield from _CHECKS.get(shape.type_name, _nothing)(value, shape, path)


@cache
def _service(name: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(name)


def _nothing(value: Any, shape: Any, path: str) -> Iterator[str]:
    yield from ()


def _structure(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: must be a structure, got {value!r}"
        return
    for name in shape.required_members:
        if name not in value:
            yield f"{path}: member {name} is required"
    if shape.is_tagged_union and len(value) != 1:
        yield f"{path}: must have exactly one member, got {sorted(value)}"
    for name, member in value.items():
        if name not in shape.members:
            yield f"{path}: has no member {name}"
        else:
            yield from violations(member, shape.members[name], f"{path}.{name}")


def _list(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: must be a list, got {value!r}"
        return
    yield from _limits(len(value), shape, path, "entries")
    for position, member in enumerate(value):
        yield from violations(member, shape.member, f"{path}[{position}]")


def _map(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: must be a map, got {value!r}"
        return
    yield from _limits(len(value), shape, path, "entries")
    for name, member in value.items():
        yield from violations(name, shape.key, f"{path} key")
        yield from violations(member, shape.value, f"{path}.{name}")


def _integer(value: Any, shape: Any, path: str) -> Iterator[str]:
    number = _number(value)
    if number is None or not number.is_integer():
        yield f"{path}: must be a whole number, got {value!r}"
        return
    yield from _limits(number, shape, path, "")


def _float(value: Any, shape: Any, path: str) -> Iterator[str]:
    number = _number(value)
    if number is None:
        yield f"{path}: must be a number, got {value!r}"
        return
    yield from _limits(number, shape, path, "")


def _boolean(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, bool) and value not in ("true", "false"):
        yield f"{path}: must be true or false, got {value!r}"


def _string(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        yield f"{path}: must be a text, got {value!r}"
        return
    text = str(value)
    yield from _limits(len(text), shape, path, "characters")
    if shape.enum and text not in shape.enum:
        yield f"{path}: must be one of {len(shape.enum)} allowed values, got {text!r}"
    pattern = shape.metadata.get("pattern")
    if pattern is not None and re.fullmatch(python_pattern(pattern), text, re.DOTALL) is None:
        yield f"{path}: must match {pattern}, got {text!r}"


def _limits(number: float, shape: Any, path: str, unit: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and number < least:
        yield f"{path}: must be at least {least} {unit}".rstrip() + f", got {number:g}"
    if most is not None and number > most:
        yield f"{path}: must be at most {most} {unit}".rstrip() + f", got {number:g}"


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


@cache
def python_pattern(pattern: str) -> str:
    """Convert Java's pattern to Python's: a Unicode property becomes a set or part of one."""
    parts, is_in_set = [], False
    for part in re.findall(
        r"\\p\{\w+\}|\\.|.", pattern.replace(_SURROGATES, r"\U00010000-\U0010FFFF"), re.DOTALL
    ):
        if part.startswith(r"\p"):
            characters = _UNICODE_PROPERTIES[part]
            parts.append(characters if is_in_set else f"[{characters}]")
            continue
        is_in_set = part == "[" or (is_in_set and part != "]")
        parts.append(r"\Z" if part == r"\z" else part)
    return "".join(parts)


_CHECKS: dict[str, Callable[[Any, Any, str], Iterator[str]]] = {
    "structure": _structure,
    "list": _list,
    "map": _map,
    "integer": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "boolean": _boolean,
    "string": _string,
}
