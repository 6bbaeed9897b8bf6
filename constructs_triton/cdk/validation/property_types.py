"""Checks the types of properties, so a wrong type is an error that names the property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token

PropertyType = tuple[type | tuple[type, ...], str]
"""The type of a property, or several types, and an example of a value."""

_TYPE_NAMES: dict[type, str] = {Sequence: "list", Mapping: "mapping"}


def check_type(property: str, value: object, expected: PropertyType) -> None:
    """Check the type of a property. ``None`` passes."""
    types, example = expected
    allowed = types if isinstance(types, tuple) else (types,)
    if value is None or any(is_instance(value, each) for each in allowed):
        return
    from constructs_triton.cdk.validation.written_values import fix_of  # noqa: PLC0415 - for a message

    names = " or ".join(_TYPE_NAMES.get(each, each.__name__) for each in allowed)
    fix = fix_of(example, value, allowed[0])
    raise InvalidValueError(f"{property}: must be of type {names}, got {shown(value)}; write {fix}")


def check_names(property: str, values: object) -> None:
    """Check that a property is a list of strings, each of which goes into a place of its own.

    A list that is known only at deployment has one entry for the CDK, whatever it has then.
    """
    if isinstance(values, list | tuple) and not is_token(values):
        return
    fix = 'write for example ["..."]'
    if isinstance(values, str) and not is_token(values):
        fix = f'write ["{values}"]'
    raise InvalidValueError(
        f"{property}: must be a list that is known at synth, got {shown(values)}; {fix}"
    )


def shown(value: object) -> str:
    """Return a value for a message: the type of an object that would print
    its address in memory.
    """
    # The entry of a list token is no token by itself.
    if is_token(value) or is_token([value]):
        return "a value that is known only at deployment"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list) and any(_prints_address(entry) for entry in value):
        return f"[{', '.join(map(shown, value))}]"
    return f"a {type(value).__name__}" if _prints_address(value) else repr(value)


def _prints_address(value: object) -> bool:
    return type(value).__repr__ is object.__repr__


def is_instance(value: object, cls: type) -> bool:
    """``isinstance``, also for interfaces of the CDK:
    those are protocols that Python cannot check.
    """
    if not getattr(cls, "_is_protocol", False):
        return isinstance(value, cls)
    members = {name: member for name, member in vars(cls).items() if not name.startswith("_")}
    methods = [name for name, member in members.items() if callable(member)]
    # A method is looked up in Python alone, while a property's value would come from the CDK.
    return any(hasattr(value, name) for name in methods or members)


BUCKET = ("bucket_name", 's3.Bucket.from_bucket_name(self, "Bucket", "...")')
KEY = ("key_arn", 'kms.Key.from_key_arn(self, "Key", "...")')
GRANTEE = ("grant_principal", 'iam.Role.from_role_arn(self, "Caller", "...")')
"""An attribute that identifies the interface, and an example: arguments of :func:`check_has`."""


def check_has(property: str, value: object, attribute: str, example: str) -> None:
    """Check that a value has the attribute of one of CDK's interfaces. ``None`` passes.

    The interfaces have no common Python class, so ``isinstance`` cannot check them. A class answers
    at once.
    """
    if value is not None and not (hasattr(type(value), attribute) or hasattr(value, attribute)):
        from constructs_triton.cdk.validation.written_values import fix_of  # noqa: PLC0415 - for a message

        what, fix = f"an object with {attribute}", fix_of(example, value)
        raise InvalidValueError(f"{property}: must be {what}, got {shown(value)}; write {fix}")
