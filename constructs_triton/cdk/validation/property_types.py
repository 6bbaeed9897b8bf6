"""Refuses a property of the wrong class where it is written, in place of an AttributeError further down."""

from __future__ import annotations

from collections.abc import Iterable

from constructs_triton.errors import InvalidValueError
from constructs_triton.spelling import did_you_mean

__all__ = ["BUCKET", "KEY", "PropertyType", "check_has", "check_known", "check_type"]

PropertyType = tuple[type | tuple[type, ...], str]
"""The class that a property has to be of, or several, and an example of how it is written."""


def check_type(property: str, value: object, kind: PropertyType) -> None:
    """Raise ``InvalidValueError`` for a value of another class; ``None`` passes."""
    classes, example = kind
    allowed = classes if isinstance(classes, tuple) else (classes,)
    if value is None or any(_is_instance(value, each) for each in allowed):
        return
    names = " or ".join(each.__name__ for each in allowed)
    given = f'"{value}"' if isinstance(value, str) else repr(value)
    raise InvalidValueError(f"{property}: must be of class {names}, got {given}; write {example}")


def _is_instance(value: object, cls: type) -> bool:
    """``isinstance``, also for interfaces of the CDK: those are protocols that Python cannot check."""
    if not getattr(cls, "_is_protocol", False):
        return isinstance(value, cls)
    members = {name: member for name, member in vars(cls).items() if not name.startswith("_")}
    methods = [name for name, member in members.items() if callable(member)]
    # A method is looked up in Python alone, while a property's value would come from the CDK.
    return any(hasattr(value, name) for name in methods or members)


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
