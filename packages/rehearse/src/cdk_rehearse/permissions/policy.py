"""Evaluates IAM policy documents: actions, resources, principals and the conditions that the stacks
use.

An unknown element or operator raises an error, so that no statement is evaluated in part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import unquote

from constructs_triton_core.cloud_assembly.wildcards import matches_wildcards

_ELEMENTS = {
    "Sid",
    "Effect",
    "Action",
    "NotAction",
    "Resource",
    "NotResource",
    "Principal",
    "Condition",
}
_IGNORES_CASE = "StringEqualsIgnoreCase"
_EXACT = ("StringEquals", _IGNORES_CASE, "Bool")
_PATTERNS = ("StringLike", "ArnLike", "ArnEquals")
_NOT_KNOWN = re.compile(r"ec2:|aws:(Principal|ResourceOrg|ResourceTag|SourceOrg)", re.I)
"""The condition keys about principals, organizations, tags and networks:
without a value they are unknown.
"""


class PolicyError(Exception):
    """A policy uses something that is not simulated."""


class Decision(Enum):
    """The decision of policies about a request."""

    ALLOWED = "allowed"
    DENIED = "explicitly denied"
    NOT_GRANTED = "not granted"


class Service(str):
    """A principal that is an AWS service, for example ``sagemaker.amazonaws.com``."""


def decide(
    documents: Iterable[Mapping[str, Any]],
    *,
    action: str,
    resource: str | None,
    context: Mapping[str, str],
    principal: str | None = None,
    note_unknown: Callable[[str], None] | None = None,
) -> Decision:
    """The decision of all documents; ``resource`` is ``None`` for a trust policy.

    With ``note_unknown``, what is not known is passed to it and raises no error: a condition, for
    example, that is not known holds in a statement that allows, and does not hold in one that
    denies.
    """
    decision = Decision.NOT_GRANTED
    for document in documents:
        for statement in _listed(document["Statement"]):
            try:
                applies = _applies(statement, action, resource, context, principal)
            except PolicyError as error:
                if note_unknown is None:
                    raise
                applies = _may_apply(statement, action, resource) and statement["Effect"] == "Allow"
                if _may_apply(statement, action, resource):
                    note_unknown(str(error))
            if applies and statement["Effect"] == "Deny":
                return Decision.DENIED
            decision = Decision.ALLOWED if applies else decision
    return decision


@lru_cache(maxsize=4096)
def parse_policy(document: str | bytes) -> Mapping[str, Any]:
    """Parse a policy, as it was sent or with percent encoding;
    many requests ask for the same ones.
    """
    is_encoded = isinstance(document, str) and document.startswith("%7B")
    parsed: Mapping[str, Any] = json.loads(unquote(document) if is_encoded else document)
    return parsed


def allowed_resources(documents: Iterable[Mapping[str, Any]], action: str) -> list[str]:
    """The resource patterns of the statements that allow an action."""
    return [
        str(resource)
        for document in documents
        for statement in _listed(document["Statement"])
        if statement["Effect"] == "Allow" and _concerns(statement, "Action", action)
        for resource in _listed(statement.get("Resource", []))
    ]


def _applies(
    statement: Mapping[str, Any],
    action: str,
    resource: str | None,
    context: Mapping[str, str],
    principal: str | None,
) -> bool:
    unknown = sorted(statement.keys() - _ELEMENTS)
    if unknown:
        raise PolicyError(f"statement element {', '.join(unknown)} is not supported")
    return (
        _concerns(statement, "Action", action)
        and (resource is None or _concerns(statement, "Resource", resource))
        and ("Principal" not in statement or _is_principal(statement["Principal"], principal))
        and _all_hold(statement.get("Condition", {}), context)
    )


def _may_apply(statement: Mapping[str, Any], action: str, resource: str | None) -> bool:
    """Whether a statement may concern a request,
    as far as its action and its resource are known.
    """
    if "NotResource" in statement:
        return _concerns(statement, "Action", action)
    patterns = [each for each in _listed(statement.get("Resource", "*")) if "${" not in each]
    has_unknown = patterns != _listed(statement.get("Resource", "*"))
    is_concerned = resource is None or has_unknown or _matches_any(patterns, resource)
    return is_concerned and _concerns(statement, "Action", action)


def _concerns(
    statement: Mapping[str, Any], element: Literal["Action", "Resource"], value: str
) -> bool:
    excluded, ignores_case = f"Not{element}", element == "Action"
    if excluded in statement:
        return not _matches_any(statement[excluded], value, ignore_case=ignores_case)
    named = statement.get(element, "*")  # the policy of an image repository names no resource
    return _matches_any(named, value, ignore_case=ignores_case)


def _is_principal(declared: Any, principal: str | None) -> bool:
    if declared == "*" or (isinstance(declared, dict) and "*" in _listed(declared.get("AWS", []))):
        return True
    if principal is None or not isinstance(declared, dict):
        return False
    return principal in _listed(
        declared.get("Service" if isinstance(principal, Service) else "AWS", [])
    )


def _all_hold(conditions: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    for operator, tests in conditions.items():
        if _positive(operator) not in (*_EXACT, *_PATTERNS):
            raise PolicyError(f"condition operator {operator} is not supported")
        for key in tests:
            if key not in context and _NOT_KNOWN.match(key):
                raise PolicyError(f"the value of condition key {key} is not known")
    return all(
        _test(operator, values, context.get(key))
        for operator, tests in conditions.items()
        for key, values in tests.items()
    )


def _positive(operator: str) -> str:
    """An operator without its negation and its suffix for keys that are absent."""
    return operator.removesuffix("IfExists").replace("Not", "", 1)


def _test(operator: str, values: Any, actual: str | None) -> bool:
    is_negated = "Not" in operator
    if actual is None:
        return is_negated or operator.endswith("IfExists")
    positive, given = _positive(operator), [str(value) for value in _listed(values)]
    if positive == _IGNORES_CASE:
        actual, given = actual.casefold(), [each.casefold() for each in given]
    is_equal = _matches_any(given, actual) if positive in _PATTERNS else actual in given
    return is_equal != is_negated


def _matches_any(patterns: Any, text: str, *, ignore_case: bool = False) -> bool:
    return any(_matches(pattern, text, ignore_case) for pattern in _listed(patterns))


def _matches(pattern: str, text: str, ignore_case: bool) -> bool:
    if "${" in pattern:
        raise PolicyError(f"policy variables are not supported, got {pattern}")
    return matches_wildcards(pattern, text, ignore_case=ignore_case)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
