"""Refuses a property of the wrong class where it is written, in place of an AttributeError further down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from constructs_triton.errors import InvalidValueError
from constructs_triton.spelling import did_you_mean

__all__ = ["BUCKET", "KEY", "PropertyType", "check_has", "check_known", "check_type", "check_types"]

PropertyType = tuple[type | tuple[type, ...], str]
"""The class that a property has to be of, or several, and an example of how it is written."""


def check_type(property: str, value: object, kind: PropertyType) -> None:
    """Raise ``InvalidValueError`` for a value of another class; ``None`` passes."""
    classes, example = kind
    if value is None or isinstance(value, classes):
        return
    names = " or ".join(each.__name__ for each in (classes if isinstance(classes, tuple) else (classes,)))
    given = f'"{value}"' if isinstance(value, str) else repr(value)
    raise InvalidValueError(f"{property}: must be of class {names}, got {given}; write {example}")


def check_types(owner: object, kinds: Mapping[str, PropertyType]) -> None:
    """:func:`check_type` for attributes of ``owner``, by their names."""
    for name, kind in kinds.items():
        check_type(name, getattr(owner, name), kind)


BUCKET = ("bucket_name", "Bucket.from_bucket_name(...)")
KEY = ("key_arn", "Key.from_key_arn(...)")
"""An attribute that tells the interface, and an example, as :func:`check_has` takes them."""


def check_has(property: str, value: object, attribute: str, example: str) -> None:
    """Raise ``InvalidValueError`` for what lacks the attribute that tells one of CDK's interfaces.

    They have many classes and no common one. ``None`` passes.
    """
    if value is not None and not hasattr(value, attribute):
        raise InvalidValueError(
            f"{property}: must be an object with {attribute}, got {value!r}; write {example}"
        )


def check_known(given: Iterable[str], known: Iterable[str], callee: str) -> None:
    """Raise ``TypeError``, as Python does for any keyword, for the first that ``callee`` does not take."""
    names = list(known)
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names, f"it takes {', '.join(names)}")
            raise TypeError(f"{callee} got an unexpected keyword argument '{name}'; {hint}")
