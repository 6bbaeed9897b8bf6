"""Permissions for principals whose policies cannot allow a call: each grant of each construct.

The constructs and their grants are found by their names, so a new one is asked too.
"""

from __future__ import annotations

import re
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from cdk_apps import warnings

import constructs_triton as library

ACCOUNT, OTHER = "123456789012", "210987654321"
ELSEWHERE = "constructs-triton:grantee-in-other-account"
WITHOUT_POLICY = "constructs-triton:grantee-without-policy"
LAMBDA = iam.ServicePrincipal("lambda.amazonaws.com")
KINDS = {
    name: getattr(library, name)
    for name in library.__all__
    if hasattr(getattr(library, name), "from_endpoint_name")
    or hasattr(getattr(library, name), "from_inference_component_name")
}


def imported(kind: Any, stack: cdk.Stack) -> Any:
    """An endpoint or a component that exists in the account of the stack."""
    endpoint = library.TritonComponentEndpoint.from_endpoint_name(stack, "Shared", "shared")
    if hasattr(kind, "from_inference_component_name"):
        return kind.from_inference_component_name(
            stack, "It", inference_component_name="base", endpoint=endpoint
        )
    return kind.from_endpoint_name(stack, "It", "digits")


def grants(construct: Any) -> list[str]:
    return [
        name
        for name in dir(construct)
        if name.startswith("grant_") and callable(getattr(construct, name))
    ]


def warned(kind: Any, grant: str, grantee: Any) -> set[str]:
    """The IDs of the warnings after one grant."""
    stack = cdk.Stack(cdk.App(), "S", env=cdk.Environment(account=ACCOUNT, region="eu-west-1"))
    who = grantee(stack) if callable(grantee) else grantee
    getattr(imported(kind, stack), grant)(who)
    found = " ".join(warnings(stack))
    return set(re.findall(r"\[ack: (constructs-triton:grantee-[a-z-]+)\]", found))


def role_of(account: str) -> Any:
    arn = f"arn:aws:iam::{account}:role/caller"
    return lambda stack: iam.Role.from_role_arn(stack, "Role", arn)


REFUSED = ("TritonMultiModelEndpoint", "grant_invoke_with_response_stream")
"""Multi-model endpoints do not stream."""
CASES = [
    (kind, grant)
    for name, kind in KINDS.items()
    for grant in grants(kind)
    if (name, grant) != REFUSED
]


@pytest.mark.parametrize(("kind", "grant"), CASES, ids=lambda each: getattr(each, "__name__", each))
def test_grant_that_allows_no_call_is_a_warning(kind: Any, grant: str) -> None:
    """A role of another account, and a principal without policies, cannot call an endpoint."""
    assert warned(kind, grant, role_of(OTHER)) == {ELSEWHERE}
    assert warned(kind, grant, LAMBDA) == {WITHOUT_POLICY}
    assert warned(kind, grant, role_of(ACCOUNT)) == set()


@pytest.mark.parametrize(
    "grantee",
    [
        lambda stack: iam.Role.from_role_name(stack, "Role", "caller"),
        lambda stack: iam.Role(stack, "Role", assumed_by=LAMBDA),
        lambda stack: iam.Group(stack, "Group"),
        lambda stack: iam.LazyRole(stack, "Lazy", assumed_by=LAMBDA),
        lambda stack: iam.Role.from_role_arn(
            stack, "Role", f"arn:aws:iam::{ACCOUNT}:role/caller", mutable=False
        ),
        lambda stack: lambda_.Function.from_function_arn(
            stack, "Function", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:caller"
        ),
    ],
)
def test_grantee_of_the_same_or_an_unknown_account_is_no_warning(grantee: Any) -> None:
    """Whoever may have a policy, or gets one outside of the app, is not warned about."""
    assert warned(library.TritonEndpoint, "grant_invoke", grantee) == set()


def test_role_that_the_app_creates_in_another_account_is_a_warning() -> None:
    """A policy of that role would name the endpoint, and allow no call either."""

    def role(stack: cdk.Stack) -> iam.Role:
        elsewhere = cdk.Environment(account=OTHER, region="eu-west-1")
        there = cdk.Stack(cdk.Stage.of(stack), "There", env=elsewhere)
        return iam.Role(there, "Role", assumed_by=LAMBDA)

    assert warned(library.TritonEndpoint, "grant_invoke", role) == {ELSEWHERE}
