"""Statements as values against the CDK's objects."""

from __future__ import annotations

import pytest
from aws_cdk import aws_iam as iam

from constructs_triton.cdk.permissions.statements import Statement, allow

STATEMENTS = {
    "one of each": allow("Read", ["s3:GetObject"], ["*"]),
    "several": allow(
        "Read", ["s3:GetObject", "s3:GetBucket"], ["arn:aws:s3:::a", "arn:aws:s3:::b"]
    ),
    "without an id": allow(None, ["s3:GetObject"], ["*"]),
    "named twice": allow("Read", ["s3:Get", "s3:Get"], ["a", "b", "a"]),
    "conditions": allow("Read", ["s3:Get"], ["*"], {"StringLike": {"s3:prefix": ["models/*"]}}),
    "denied": Statement("Deny", ["s3:Get"], ["*"], effect="Deny"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_json_is_that_of_the_cdk(name: str) -> None:
    """A statement has the JSON that the CDK would write, with each action and resource once."""
    given = STATEMENTS[name]
    statement = iam.PolicyStatement(
        sid=given.sid,
        effect=iam.Effect(given.effect.upper()),
        actions=list(given.actions),
        resources=list(given.resources),
        conditions=given.conditions,
    )
    assert given.to_json() == statement.to_statement_json()
    assert given.to_cdk().to_statement_json() == given.to_json()
