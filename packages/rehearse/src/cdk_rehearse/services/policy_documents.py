"""Policy documents with unknown values, in a form that services accept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..values.stand_ins import is_opaque

_COLONS_OF_AN_ARN = 5


def policy_text(document: Any) -> str:
    """Return a document as JSON.

    IAM refuses a resource that is not an ARN and an action without a service (user guide, "IAM JSON
    policy elements"). An unknown one gets this form, and matches nothing.
    """
    if not isinstance(document, Mapping) or "Statement" not in document:
        return json.dumps(document)
    statements = document["Statement"]
    if isinstance(statements, list):
        return json.dumps({**document, "Statement": [_statement(each) for each in statements]})
    return json.dumps({**document, "Statement": _statement(statements)})


def _statement(statement: Any) -> Any:
    if not isinstance(statement, Mapping):
        return statement
    accepted = dict(statement)
    for name in ("Resource", "NotResource"):
        if name in accepted:
            accepted[name] = _each(accepted[name], _COLONS_OF_AN_ARN, "arn:aws:unknown:::")
    for name in ("Action", "NotAction"):
        if name in accepted:
            accepted[name] = _each(accepted[name], 1, "unknown:")
    return accepted


def _each(value: Any, least: int, prefix: str) -> Any:
    """Return a value, or each of a list, with the prefix that an unknown one lacks."""
    if isinstance(value, list):
        return [_each(each, least, prefix) for each in value]
    if not is_opaque(value) or value.count(":") >= least:
        return value
    return f"{prefix}{value}"
