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
        ({"StringEquals": {"aws:SourceArn": "x"}}, {}, False),
        ({"StringNotEquals": {"aws:SourceAccount": "x"}}, {}, True),
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
        ({"StringEqualsIfExists": {"s3:prefix": "x"}}, {}, True),
        ({"StringEqualsIfExists": {"a": "x"}}, {"a": "y"}, False),
        ({"StringNotEqualsIgnoreCase": {"a": "X"}}, {"a": "x"}, False),
        ({"StringNotEqualsIfExists": {"a": "x"}}, {"a": "x"}, False),
        ({"Bool": {"aws:SecureTransport": "false"}}, {"aws:SecureTransport": "true"}, False),
        ({"Bool": {"aws:SecureTransport": True}}, {"aws:SecureTransport": "true"}, True),
        ({"StringEquals": {"AWS:sourceaccount": "1"}}, {"aws:SourceAccount": "1"}, True),
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
    {**READ, "Condition": {"StringEquals": {"aws:SourceVpce": "vpce-1"}}},
    {**READ, "Condition": {"StringEquals": {"s3:ExistingObjectTag/team": "${aws:username}"}}},
    {**READ, "Resource": ["arn:aws:s3:::other/*", "arn:aws:s3:::not-simulated-Made-0a1b2c/*"]},
    {**READ, "Principal": {"AWS": "not-simulated-Made-0a1b2c"}},
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


MADE = "not-simulated-Made-0a1b2c"


@pytest.mark.parametrize(
    ("statement", "request_"),
    [
        ({**READ, "Action": ["s3:PutObject", f"unknown:{MADE}"]}, {}),
        ({**READ, "Effect": MADE}, {}),
        (MADE, {}),
        ({**READ, "Condition": MADE}, {}),
        ({**READ, "Condition": {"StringEquals": MADE}}, {}),
        ({**READ, "Resource": "us-east-1"}, {"is_unknown": lambda text: text == "us-east-1"}),
        (
            {**READ, "Principal": {"AWS": "arn:aws:sts::1:assumed-role/caller/session"}},
            {"principal": "arn:aws:iam::1:role/caller"},
        ),
        ({**READ, "Resource": "arn:aws:s3:::other/*"}, {"resource": f"arn:aws:s3:::{MADE}/a"}),
    ],
)
def test_statement_that_depends_on_an_unknown_value_may_allow(
    statement: Any, request_: dict[str, Any]
) -> None:
    """Neither side of a comparison concludes anything from a value that only AWS has."""
    noted: list[str] = []
    assert verdict(statement, note_unknown=noted.append, **request_) is Decision.ALLOWED
    assert len(noted) == 1


def test_stand_in_is_equal_to_itself() -> None:
    """A role that may use a value has the permission for it, whatever the value is."""
    statement = {**READ, "Resource": f"arn:aws:s3:::{MADE}/*"}
    assert verdict(statement, resource=f"arn:aws:s3:::{MADE}/a") is Decision.ALLOWED


def test_known_part_of_a_statement_decides_before_an_unknown_one() -> None:
    """A statement for another action, or with a condition that is false, never applies."""
    for known in ({"Action": "s3:PutObject"}, {"Condition": {"Bool": {"b": "true"}}}):
        statement = {**READ, "Resource": MADE, **known}
        assert verdict(statement, context={"b": "false"}) is Decision.NOT_GRANTED
