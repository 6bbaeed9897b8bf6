"""The environment of a construct's stack."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from constructs_triton.cdk.validation.read_once import environment_of, stack_of
from constructs_triton_core.tokens import is_token


def test_each_stack_has_its_own_environment() -> None:
    """Constructs of stacks in two accounts, and of one that may be deployed anywhere,
    get their own.
    """
    app = cdk.App()
    here = cdk.Environment(account="111111111111", region="eu-west-1")
    there = cdk.Environment(account="222222222222", region="us-east-1")
    stacks = [
        cdk.Stack(app, "Here", env=here),
        cdk.Stack(app, "There", env=there),
        cdk.Stack(app, "Any"),
    ]
    scopes = [Construct(stack, "Scope") for stack in stacks]
    for _ in range(2):  # read, and remembered
        assert [stack_of(each) for each in scopes] == stacks
        found = [environment_of(each) for each in scopes]
        assert [each.region for each in found[:2]] == ["eu-west-1", "us-east-1"]
        assert [each.account for each in found[:2]] == ["111111111111", "222222222222"]
        assert is_token(found[2].region)
        assert is_token(found[2].account)


def test_nested_stack_is_a_stack_of_its_own() -> None:
    """A construct in a nested stack belongs to that, and not to its parent."""
    parent = cdk.Stack(cdk.App(), "Parent")
    nested = cdk.NestedStack(parent, "Nested")
    assert stack_of(Construct(nested, "Scope")) is nested
    assert environment_of(nested) == (nested.account, nested.region, nested.partition)
