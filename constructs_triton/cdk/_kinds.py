"""Refuses a property of the wrong class where it is written, in place of an AttributeError further down."""

from __future__ import annotations

from collections.abc import Mapping

from constructs_triton.errors import InvalidValueError

__all__ = ["Kind", "check_kind", "check_kinds"]

Kind = tuple[type | tuple[type, ...], str]
"""The class that a property has to be of, or several, and an example of how it is written."""


def check_kind(property: str, value: object, kind: Kind) -> None:
    """Raise ``InvalidValueError`` for a value of another class; ``None`` passes."""
    classes, example = kind
    if value is None or isinstance(value, classes):
        return
    names = " or ".join(each.__name__ for each in (classes if isinstance(classes, tuple) else (classes,)))
    given = f'"{value}"' if isinstance(value, str) else repr(value)
    raise InvalidValueError(f"{property}: must be of class {names}, got {given}; write {example}")


def check_kinds(owner: object, kinds: Mapping[str, Kind]) -> None:
    """:func:`check_kind` for attributes of ``owner``, by their names."""
    for name, kind in kinds.items():
        check_kind(name, getattr(owner, name), kind)
