"""Checks the types of properties, so a wrong type is an error that names the property."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from constructs_triton_core.errors import InvalidValueError

PropertyType = tuple[type | tuple[type, ...], str]
"""The type of a property, or several types, and an example of a value."""

_STRING = re.compile(r'"[^"]*"')
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")
_TYPE_NAMES: dict[type, str] = {Sequence: "list", Mapping: "mapping"}


def check_type(property: str, value: object, expected: PropertyType) -> None:
    """Check the type of a property. ``None`` passes."""
    types, example = expected
    allowed = types if isinstance(types, tuple) else (types,)
    if value is None or any(_is_instance(value, each) for each in allowed):
        return
    names = " or ".join(_TYPE_NAMES.get(each, each.__name__) for each in allowed)
    fix = with_value(example, value)
    raise InvalidValueError(f"{property}: must be of type {names}, got {shown(value)}; write {fix}")


def with_value(example: str, value: object) -> str:
    """Return an example with the user's string or number in place of its last one.

    ``Duration.seconds(600)`` and ``90`` are ``Duration.seconds(90)``: a number has the unit of the example,
    which is that of the API.
    """
    if isinstance(value, str):
        written = f'"{value}"'
    elif isinstance(value, int | float) and not isinstance(value, bool):
        written = repr(value)
    else:
        return example
    literals = list((_STRING if isinstance(value, str) else _NUMBER).finditer(example))
    if not literals or "(" not in example:
        return example
    start, end = literals[-1].span()
    return f"{example[:start]}{written}{example[end:]}"


def shown(value: object) -> str:
    """Return a value for a message: the type of an object that would print its address in memory."""
    if isinstance(value, str):
        return f'"{value}"'
    return f"a {type(value).__name__}" if type(value).__repr__ is object.__repr__ else repr(value)


def _is_instance(value: object, cls: type) -> bool:
    """``isinstance``, also for interfaces of the CDK: those are protocols that Python cannot check."""
    if not getattr(cls, "_is_protocol", False):
        return isinstance(value, cls)
    members = {name: member for name, member in vars(cls).items() if not name.startswith("_")}
    methods = [name for name, member in members.items() if callable(member)]
    # A method is looked up in Python alone, while a property's value would come from the CDK.
    return any(hasattr(value, name) for name in methods or members)


BUCKET = ("bucket_name", 's3.Bucket.from_bucket_name(self, "Bucket", "...")')
KEY = ("key_arn", 'kms.Key.from_key_arn(self, "Key", "...")')
"""An attribute that identifies the interface, and an example: arguments of :func:`check_has`."""


def check_has(property: str, value: object, attribute: str, example: str) -> None:
    """Check that a value has the attribute of one of CDK's interfaces. ``None`` passes.

    The interfaces have no common Python class, so ``isinstance`` cannot check them.
    """
    if value is not None and not hasattr(value, attribute):
        raise InvalidValueError(
            f"{property}: must be an object with {attribute}, got {shown(value)}; "
            f"write {with_value(example, value)}"
        )
