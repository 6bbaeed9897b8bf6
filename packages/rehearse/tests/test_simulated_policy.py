"""IAM policies as the simulated account evaluates them."""

from __future__ import annotations

from typing import Any

import pytest

from cdk_rehearse.permissions.policy import Decision, PolicyError, Service, decide

READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/models/*"}


def verdict(*statements: dict[str, Any], **request: Any) -> Decision:
    """Return the decision about reading an object below the prefix, or another given request."""
    asked: dict[str, Any] = {
        "action": "s3:GetObject",
        "resource": "arn:aws:s3:::bucket/models/a.tar.gz",
        "context": {},
    }
    return decide([{"Statement": list(statements)}], **{**asked, **request})


OTHERS = {
    "Effect": "Allow",
    "Action": "s3:GetObject",
    "NotResource": "arn:aws:s3:::bucket/private/*",
}
TRUST = {
    "Effect": "Allow",
    "Action": "sts:AssumeRole",
    "Principal": {"Service": "lambda.amazonaws.com"},
}
ASSUMING: dict[str, Any] = {"action": "sts:AssumeRole", "resource": None}


@pytest.mark.parametrize(
    ("statements", "request_", "decision"),
    [
        ([READ], {}, Decision.ALLOWED),
        ([READ], {"action": "s3:PutObject"}, Decision.NOT_GRANTED),
        ([READ], {"resource": "arn:aws:s3:::bucket/other/a"}, Decision.NOT_GRANTED),
        ([{**READ, "Action": ["s3:Put*", "s3:get*"]}], {}, Decision.ALLOWED),
        ([READ, {**READ, "Effect": "Deny"}, READ], {}, Decision.DENIED),
        ([OTHERS], {}, Decision.ALLOWED),
        ([OTHERS], {"resource": "arn:aws:s3:::bucket/private/a"}, Decision.NOT_GRANTED),
        ([TRUST], {**ASSUMING, "principal": Service("lambda.amazonaws.com")}, Decision.ALLOWED),
        ([TRUST], {**ASSUMING, "principal": Service("ec2.amazonaws.com")}, Decision.NOT_GRANTED),
    ],
)
def test_statements_decide(
    statements: list[Any], request_: dict[str, Any], decision: Decision
) -> None:
    """An Allow needs action, resource and principal; a Deny wins;
    ``NotResource`` matches all others.
    """
    assert verdict(*statements, **request_) is decision


@pytest.mark.parametrize(
    ("condition", "context", "holds"),
    [
        ({"StringEquals": {"a": ["x", "y"]}}, {"a": "y"}, True),
        ({"StringEquals": {"a": "x"}}, {}, False),
        ({"StringNotEquals": {"a": "x"}}, {}, True),
        ({"StringNotEquals": {"a": "x"}}, {"a": "x"}, False),
        ({"StringLike": {"s3:prefix": "models/*"}}, {"s3:prefix": "models/"}, True),
        ({"StringLike": {"s3:prefix": "models/*"}}, {"s3:prefix": "other/"}, False),
        (
            {"ArnLike": {"a": "arn:aws:sagemaker:*:1:*"}},
            {"a": "arn:aws:sagemaker:us-east-1:1:model/m"},
            True,
        ),
        ({"StringEqualsIgnoreCase": {"a": "True"}}, {"a": "true"}, True),
        ({"StringEqualsIgnoreCase": {"a": "True"}}, {"a": "no"}, False),
        ({"ArnNotLike": {"a": "arn:aws:iam::1:role/*"}}, {"a": "arn:aws:iam::2:role/r"}, True),
        ({"StringNotLike": {"a": ["x*", "y*"]}}, {"a": "yes"}, False),
        ({"StringEqualsIfExists": {"a": "x"}}, {}, True),
        ({"StringEqualsIfExists": {"a": "x"}}, {"a": "y"}, False),
        ({"StringNotEqualsIgnoreCase": {"a": "X"}}, {"a": "x"}, False),
        ({"StringNotEqualsIfExists": {"a": "x"}}, {"a": "x"}, False),
        ({"Bool": {"aws:SecureTransport": "false"}}, {"aws:SecureTransport": "true"}, False),
        ({"StringEquals": {"a": "x"}, "Bool": {"b": "true"}}, {"a": "x", "b": "false"}, False),
    ],
)
def test_conditions_are_evaluated(
    condition: dict[str, Any], context: dict[str, str], holds: bool
) -> None:
    """All operators of a condition must match; a missing key matches only a negated operator."""
    expected = Decision.ALLOWED if holds else Decision.NOT_GRANTED
    assert verdict({**READ, "Condition": condition}, context=context) is expected


UNKNOWN: list[dict[str, Any]] = [
    {**READ, "NotPrincipal": "*"},
    {**READ, "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-0123456789"}}},
    {**READ, "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}},
    {**READ, "Resource": "arn:aws:s3:::bucket/${aws:username}/*"},
]


@pytest.mark.parametrize("statement", UNKNOWN)
def test_unsupported_elements_are_errors(statement: dict[str, Any]) -> None:
    """What is not supported raises an error: an element, an operator, a
    condition key, a variable.
    """
    with pytest.raises(PolicyError):
        verdict(statement)


@pytest.mark.parametrize("statement", UNKNOWN)
def test_unsupported_elements_can_be_noted_in_place(statement: dict[str, Any]) -> None:
    """A statement that is known in part allows, and does not deny;
    one for other actions is not noted.
    """
    noted: list[str] = []
    assert verdict(statement, note_unknown=noted.append) is Decision.ALLOWED
    assert (
        verdict(READ, {**statement, "Effect": "Deny"}, note_unknown=noted.append)
        is Decision.ALLOWED
    )
    assert len(noted) == 2
    assert (
        verdict(statement, action="s3:PutObject", note_unknown=noted.append) is Decision.NOT_GRANTED
    )
    assert len(noted) == 2


def test_resources_that_a_noted_statement_does_not_match_are_not_allowed() -> None:
    """Only the condition is unknown, the resource is not."""
    noted: list[str] = []
    statement = {**UNKNOWN[2], "Resource": "arn:aws:s3:::other/*"}
    assert verdict(statement, note_unknown=noted.append) is Decision.NOT_GRANTED
    assert noted == []
