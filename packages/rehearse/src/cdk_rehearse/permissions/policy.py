"""Evaluates IAM policy documents: actions, resources, principals and the conditions that the stacks
use.

What is not known is neither yes nor no: an element that is not simulated, a condition key without a
value, a value that only AWS knows. A statement that depends on it may apply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import unquote

from constructs_triton_core.cloud_assembly.wildcards import matches_wildcards

from ..services.policy_documents import NOT_KNOWN_KEY, has_unknown_form, without_form
from ..values.stand_ins import is_opaque

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
_EFFECTS = ("Allow", "Deny")
_IGNORES_CASE = ("StringEqualsIgnoreCase", "Bool")
_EXACT = ("StringEquals", *_IGNORES_CASE)
_PATTERNS = ("StringLike", "ArnLike", "ArnEquals")
_VARIABLE = re.compile(r"\$\{([^}]{0,500})\}")
#: The condition keys that a request of a role or a service has or does not have, as the simulated
#: account makes it: without a value, they are absent. Each other key may have a value in AWS.
_KNOWN_IF_ABSENT = {
    "aws:sourceaccount",
    "aws:sourcearn",
    "aws:sourceowner",
    "kms:grantisforawsresource",
    "kms:viaservice",
    "s3:prefix",
}


class PolicyError(Exception):
    """A decision depends on something that is not known."""


class Decision(Enum):
    """The decision of policies about a request."""

    ALLOWED = "allowed"
    DENIED = "explicitly denied"
    NOT_GRANTED = "not granted"


class Service(str):
    """A principal that is an AWS service, for example ``sagemaker.amazonaws.com``."""


@dataclass(frozen=True)
class NotKnown:
    """The answer to a question that only AWS can answer, and why."""

    reason: str


Answer = bool | NotKnown
IsUnknown = Callable[[str], bool]


@dataclass(frozen=True)
class _Request:
    """What is asked; the names of condition keys are in lower case, since IAM ignores it."""

    action: str
    resource: str | None
    context: Mapping[str, str]
    principal: str | None
    is_unknown: IsUnknown


def decide(
    documents: Iterable[Mapping[str, Any]],
    *,
    action: str,
    resource: str | None,
    context: Mapping[str, str],
    principal: str | None = None,
    note_unknown: Callable[[str], None] | None = None,
    is_unknown: IsUnknown = is_opaque,
) -> Decision:
    """The decision of all documents; ``resource`` is ``None`` for a trust policy.

    With ``note_unknown``, the reason why a statement may apply is passed to it and raises no error.
    Such a statement applies if it allows, and does not apply if it denies. ``is_unknown`` returns
    whether a string of a document has the place of a value that is not known.
    """
    lower = {key.lower(): value for key, value in context.items()}
    request = _Request(action, resource, lower, principal, is_unknown)
    decision = Decision.NOT_GRANTED
    for statement in _statements(documents):
        is_denial = _effect(statement) == "Deny"
        applies = _applies(statement, request)
        if isinstance(applies, NotKnown):
            if note_unknown is None:
                raise PolicyError(applies.reason)
            note_unknown(applies.reason)
            applies = not is_denial

        # A Deny in any policy wins (IAM user guide, "Policy evaluation logic").
        if applies and is_denial:
            return Decision.DENIED
        if applies:
            decision = Decision.ALLOWED
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
    request = _Request(action, None, {}, None, is_opaque)
    patterns: list[str] = []
    for statement in _statements(documents):
        if _effect(statement) == "Allow" and _concerns(statement, "Action", request) is True:
            patterns += map(str, _listed(statement.get("Resource", [])))
    return patterns


def _statements(documents: Iterable[Any]) -> Iterator[Any]:
    """The statements of all documents. One that is not known may be of any form."""
    for document in documents:
        is_known = isinstance(document, Mapping)
        yield from _listed(document.get("Statement") if is_known else document)


def _effect(statement: Any) -> Any:
    """The effect of a statement; ``None`` if the statement is not known."""
    return statement.get("Effect") if isinstance(statement, Mapping) else None


def _applies(statement: Any, request: _Request) -> Answer:
    if not isinstance(statement, Mapping):
        return NotKnown("a statement is not known")
    return _all(_answers(statement, request))


def _answers(statement: Mapping[str, Any], request: _Request) -> Iterator[Answer]:
    """Yield whether each element of a statement fits a request."""
    yield _concerns(statement, "Action", request)
    if request.resource is not None:
        yield _concerns(statement, "Resource", request)
    if "Principal" in statement:
        yield _is_principal(statement["Principal"], request)
    yield _all(_conditions(statement.get("Condition", {}), request))
    others = sorted(statement.keys() - _ELEMENTS)
    if others:
        yield NotKnown(f"statement element {', '.join(others)} is not supported")
    if _effect(statement) not in _EFFECTS:
        yield NotKnown("the Effect of a statement is not known")


def _concerns(
    statement: Mapping[str, Any], element: Literal["Action", "Resource"], request: _Request
) -> Answer:
    """Whether the actions or the resources of a statement contain that of a request."""
    value = request.action if element == "Action" else request.resource
    assert value is not None
    ignore_case = element == "Action"

    excluding = f"Not{element}"
    if excluding in statement:
        return _not(_matches_any(statement[excluding], value, request, ignore_case=ignore_case))
    # The policy of an image repository names no resource.
    return _matches_any(statement.get(element, "*"), value, request, ignore_case=ignore_case)


def _is_principal(declared: Any, request: _Request) -> Answer:
    """Whether the principals of a statement contain the caller."""
    if declared == "*":
        return True
    if not isinstance(declared, Mapping):
        return NotKnown(f"the principal {declared} is not known")
    return _any(_principals(declared, request))


def _principals(declared: Mapping[str, Any], request: _Request) -> Iterator[Answer]:
    """Yield whether each principal of a statement is the caller."""
    is_service = isinstance(request.principal, Service)
    for account_or_role in _listed(declared.get("AWS", [])):
        if account_or_role == "*":
            yield True
        else:
            yield not is_service and _is_named(account_or_role, request)
    for service in _listed(declared.get("Service", [])):
        yield is_service and _is_named(service, request)


def _is_named(declared: Any, request: _Request) -> Answer:
    """Whether a principal names the caller; which sessions of a role call is not known."""
    if declared == request.principal:
        return True
    is_session = ":assumed-role/" in str(declared) and request.principal is not None
    if is_session or request.is_unknown(str(declared)):
        return NotKnown(f"whether {declared} is the caller is not known")
    return False


def _conditions(conditions: Any, request: _Request) -> Iterator[Answer]:
    """Yield whether a request fits each condition of a statement."""
    if not isinstance(conditions, Mapping):
        yield NotKnown("a condition is not known")
        return
    for operator, tests in conditions.items():
        if not isinstance(tests, Mapping):
            yield NotKnown(f"what the condition operator {operator} tests is not known")
        elif _positive(operator) not in (*_EXACT, *_PATTERNS):
            yield NotKnown(f"condition operator {operator} is not supported")
        else:
            for key, values in tests.items():
                yield _test(operator, key, values, request)


def _positive(operator: str) -> str:
    """An operator without its negation and its suffix for keys that are absent."""
    return operator.removesuffix("IfExists").replace("Not", "", 1)


def _test(operator: str, key: str, values: Any, request: _Request) -> Answer:
    """Whether a request fits one condition key."""
    is_negated = "Not" in operator
    actual = request.context.get(key.lower())
    if actual is None:
        if key.lower() in _KNOWN_IF_ABSENT:
            return is_negated or operator.endswith("IfExists")
        name = "" if key.startswith(NOT_KNOWN_KEY) else f" {key}"
        return NotKnown(f"the value of condition key{name} is not known")

    # ``Bool`` compares strings: a template has true as a string or as a boolean.
    given = []
    for value in _listed(values):
        given.append(json.dumps(value) if isinstance(value, bool) else str(value))

    positive = _positive(operator)
    matches = _matches_any(
        given,
        actual,
        request,
        ignore_case=positive in _IGNORES_CASE,
        has_wildcards=positive in _PATTERNS,
    )
    return _not(matches) if is_negated else matches


def _matches_any(
    patterns: Any,
    text: str,
    request: _Request,
    *,
    ignore_case: bool = False,
    has_wildcards: bool = True,
) -> Answer:
    """Whether one of the patterns matches a text, as :func:`_matches` says."""
    return _any(
        _matches(str(pattern), text, request, ignore_case, has_wildcards)
        for pattern in _listed(patterns)
    )


def _matches(
    pattern: str, text: str, request: _Request, ignore_case: bool, has_wildcards: bool
) -> Answer:
    """Whether a pattern matches a text. A stand-in matches itself, and may match everything."""
    known = without_form(pattern)
    filled = _VARIABLE.sub(lambda match: request.context.get(match[1].lower(), "*"), known)

    # A policy variable without a value may have any value, so it matches as a wildcard.
    variables = _VARIABLE.findall(known)
    has_unknown_variable = any(name.lower() not in request.context for name in variables)
    if has_unknown_variable:
        if not matches_wildcards(filled, text, ignore_case=ignore_case):
            return False
        return NotKnown(f"the value of a policy variable is not known, in {known}")

    if _is_match(filled, text, ignore_case=ignore_case, has_wildcards=has_wildcards):
        return True
    if has_unknown_form(pattern) or request.is_unknown(known):
        return NotKnown(f"{known} is not known")
    if request.is_unknown(text):
        return NotKnown(f"{text} is not known")
    return False


def _is_match(pattern: str, text: str, *, ignore_case: bool, has_wildcards: bool) -> bool:
    """Whether a pattern without variables matches a text."""
    if has_wildcards:
        return matches_wildcards(pattern, text, ignore_case=ignore_case)
    if ignore_case:
        return pattern.lower() == text.lower()
    return pattern == text


def _any(answers: Iterable[Answer]) -> Answer:
    """Whether one of the answers is yes; not known if one of them may be."""
    found: Answer = False
    for answer in answers:
        if answer is True:
            return True
        found = answer or found
    return found


def _all(answers: Iterable[Answer]) -> Answer:
    """Whether all answers are yes; not known if those that are known are."""
    return _not(_any(_not(answer) for answer in answers))


def _not(answer: Answer) -> Answer:
    return answer if isinstance(answer, NotKnown) else not answer


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
