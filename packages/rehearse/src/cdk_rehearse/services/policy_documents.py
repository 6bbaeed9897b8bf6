"""Policy documents with unknown values, in a form that services accept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.unknown_values import UnknownList, is_unknown, like

from ..values.stand_ins import is_opaque

NOT_KNOWN_KEY = "unknown:"
"""The beginning of a condition key that has the place of one which is not known."""

_COLONS_OF_AN_ARN = 5
_ACTION = "unknown:"
_ARN = "arn:aws:unknown:::"
_NOTHING_KNOWN = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def policy_text(document: Any) -> str:
    """Return a document as JSON; it is unknown if a part of it is.

    IAM refuses a resource that is not an ARN, an action without a service, and a condition without
    keys (user guide, "IAM JSON policy elements"). An unknown one gets such a form, of which
    :func:`without_form` returns what is unknown. A statement of which a part is unknown gets a
    condition that is not known.
    """
    if not isinstance(document, Mapping) and not is_unknown(document):
        return json.dumps(document)
    accepted = {"Version": "2012-10-17", "Statement": document}
    if isinstance(document, Mapping):
        accepted = dict(document)
    if "Statement" in accepted:
        accepted["Statement"] = _statements(accepted["Statement"])
    return like(document, json.dumps(accepted))


def without_form(text: str) -> str:
    """Return the unknown value of a resource or an action that got an accepted form."""
    return text.removeprefix(_ARN).removeprefix(_ACTION)


def has_unknown_form(text: str) -> bool:
    """Return whether an unknown resource or action got an accepted form."""
    return text.startswith((_ARN, _ACTION))


def _statements(given: Any) -> Any:
    if isinstance(given, list) and not is_unknown(given):
        return [_statement(statement) for statement in given]
    return _statement(given)


def _statement(statement: Any) -> Any:
    """Return a statement in which unknown parts fit what the service checks."""
    if is_unknown(statement):
        return {**_NOTHING_KNOWN, "Condition": _unknown_condition("statement")}
    if not isinstance(statement, Mapping):
        return statement
    accepted = dict(statement)
    for name in ("Resource", "NotResource"):
        if name in accepted:
            accepted[name] = _each(accepted[name], _COLONS_OF_AN_ARN, _ARN)
    for name in ("Action", "NotAction"):
        if name in accepted:
            accepted[name] = _each(accepted[name], 1, _ACTION)
    if "Condition" in accepted:
        accepted["Condition"] = _condition(accepted["Condition"])
    if is_unknown(accepted.get("Principal")):
        accepted["Principal"] = {"AWS": accepted["Principal"]}
    if is_unknown(accepted.get("Effect")):
        accepted["Effect"] = "Allow"
        accepted["Condition"] = {**accepted.get("Condition", {}), **_unknown_condition("Effect")}
    return accepted


def _condition(condition: Any) -> Any:
    """Return a condition in which each operator has keys, and each key has strings.

    IAM converts numbers to strings; moto refuses them.
    """
    if is_unknown(condition):
        return _unknown_condition("Condition")
    if not isinstance(condition, Mapping):
        return condition
    return {operator: _tests(tests) for operator, tests in condition.items()}


def _tests(tests: Any) -> Any:
    if is_unknown(tests):
        return {f"{NOT_KNOWN_KEY}key": str(tests)}
    if not isinstance(tests, Mapping):
        return tests
    return {key: _number_as_text(values) for key, values in tests.items()}


def _number_as_text(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _unknown_condition(name: str) -> dict[str, Any]:
    return {"StringEquals": {f"{NOT_KNOWN_KEY}{name}": "unknown"}}


def _each(value: Any, least: int, prefix: str) -> Any:
    """Return a value, or each of a list, with the prefix that an unknown one lacks."""
    if isinstance(value, UnknownList) and not value:
        return f"{prefix}{value.origin}"
    if isinstance(value, list):
        return [_each(element, least, prefix) for element in value]
    if not is_opaque(value) or value.count(":") >= least:
        return value
    return f"{prefix}{value}"
