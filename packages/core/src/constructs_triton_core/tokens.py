"""Recognizes CDK tokens: values that CloudFormation only knows at deployment.

A token looks like an ordinary string, number or list, so every comparison with it gives a wrong
answer. Each check of a range, a length or a pattern calls :func:`is_token` first. This module does
not import the CDK.
"""

from __future__ import annotations

__all__ = ["is_lookup_dummy", "is_token"]

# The CDK writes a token as "${Token[Name.12]}" inside a string and as ["#{Token[Name.12]}"] in
# place of a list. In place of a number it writes a double whose upper 16 bits are 0xFBFF: the range
# below.
_STRING_TOKEN = "${Token["
_LIST_TOKEN = "#{Token["
_NUMBER_TOKEN_LOWEST = -1.9490628022799996e289
_NUMBER_TOKEN_HIGHEST = -1.8881545897087498e289
# What lookups of the CDK return in the first synthesis, before its command line has looked it
# up: ssm.StringParameter.value_from_lookup; iam.Role.from_lookup and ecr.Repository.from_lookup.
_LOOKUP_DUMMIES = "dummy-value-for-", "DUMMY_ARN"


def is_lookup_dummy(value: object) -> bool:
    """Return whether a value stands in for one that the CDK has not looked up yet.

    The first synthesis must not fail on it: the CDK's command line looks values up after it, and
    synthesizes again. The template of the first synthesis is thrown away.
    """
    return isinstance(value, str) and any(dummy in value for dummy in _LOOKUP_DUMMIES)


def is_token(value: object) -> bool:
    """Return whether a value is only known at deployment.

    Gives the answer of CDK's ``Token.is_unresolved`` for strings, numbers, lists and
    ``IResolvable`` objects, without a call to the CDK. A ``Duration`` or ``Size`` of a token is a
    token too. So is the dummy of a lookup, which the CDK does not call unresolved.
    """
    match value:
        case str():
            return _STRING_TOKEN in value or is_lookup_dummy(value)
        case int() | float():
            return _NUMBER_TOKEN_LOWEST <= value <= _NUMBER_TOKEN_HIGHEST
        case [str() as only]:
            return _LIST_TOKEN in only
    # Two methods of IResolvable, because a pathlib.Path has a resolve method as well.
    if hasattr(value, "resolve") and hasattr(value, "to_string"):
        return True
    is_unresolved = getattr(value, "is_unresolved", None)
    return callable(is_unresolved) and bool(is_unresolved())
