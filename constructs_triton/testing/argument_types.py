"""Checks the types of what a test passes to a helper, so that a wrong type names the argument.

A test that passes a wrong type would fail with an error of the helper's own code, or compare with
what was not meant: the keys of a mapping, or the characters of a string.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from constructs_triton_core.errors import InvalidValueError


def check_name(argument: str, value: object, example: str) -> None:
    """Check that a value is a string. ``None`` passes."""
    if value is not None and not isinstance(value, str):
        raise _error(argument, "a string", value, f'"{example}"')


def check_names(argument: str, value: object, example: str) -> None:
    """Check that a value is a string or a collection of strings. ``None`` passes."""
    if value is None or isinstance(value, str):
        return
    is_collection = isinstance(value, Collection) and not isinstance(value, Mapping | bytes)
    if not is_collection or not all(isinstance(name, str) for name in cast("Any", value)):
        raise _error(argument, "a string or a list of strings", value, f'["{example}"]')


def check_by_name(argument: str, value: object, name: str, example: object) -> None:
    """Check that a value maps names to values, such as ``name`` to ``example``. ``None`` passes."""
    if value is None:
        return
    shown = example
    if isinstance(value, type(example)):
        shown = value  # meant for the only variant
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise _error(argument, "a mapping by name", value, f'{{"{name}": {shown!r}}}')


def check_numbers_by_name(argument: str, value: object, name: str) -> None:
    """Check that a value maps names to numbers. ``None`` passes."""
    check_by_name(argument, value, name, 1)
    if isinstance(value, Mapping) and not all(is_number(number) for number in value.values()):
        raise _error(argument, "a mapping from names to numbers", value, f'{{"{name}": 1}}')


def listed_names(argument: str, value: Iterable[str], example: str) -> list[str]:
    """Return strings as a list, also those of an iterator; a single string is a list of one."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise _error(argument, "a list of strings", value, f'["{example}"]')
    names = list(value)
    check_names(argument, names, example)
    return names


def check_number(argument: str, value: object, example: float) -> None:
    """Check that a value is a number. ``None`` passes."""
    if value is not None and not is_number(value):
        raise _error(argument, "a number", value, f"{example}")


def check_bounds(argument: str, value: object) -> None:
    """Check that a value has two numbers. ``None`` passes."""
    if value is None:
        return
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    if not is_pair or not all(is_number(bound) for bound in value):  # type: ignore[attr-defined]
        raise _error(argument, "the smallest and the largest number", value, "(1, 4)")


def is_number(value: Any) -> bool:
    """Return whether a value is a number, which a ``bool`` is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _error(argument: str, what: str, value: object, fix: str) -> InvalidValueError:
    shown = f"a {type(value).__name__}" if type(value).__repr__ is object.__repr__ else repr(value)
    return InvalidValueError(
        f"{argument}: must be {what}, got {shown[:60]}; write {argument}={fix}"
    )
