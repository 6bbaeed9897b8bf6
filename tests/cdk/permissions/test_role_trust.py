"""Roles of the app that SageMaker cannot assume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from cdk_apps import (
    add_endpoint,
    add_repository,
    make_stack,
    policies,
    synthesize,
    warnings,
    write_repository,
)

from constructs_triton import InstanceType, TritonComponentEndpoint, TritonEndpoint, TritonModel
from constructs_triton_core.errors import InvalidValueError

LAMBDA = iam.ServicePrincipal("lambda.amazonaws.com")
SAGEMAKER = iam.ServicePrincipal("sagemaker.amazonaws.com")


def denying(stack: cdk.Stack) -> iam.IRole:
    role = iam.Role(stack, "Own", assumed_by=LAMBDA)
    statement = iam.PolicyStatement(
        effect=iam.Effect.DENY, actions=["sts:AssumeRole"], principals=[SAGEMAKER]
    )
    assert role.assume_role_policy is not None
    role.assume_role_policy.add_statements(statement)
    return role


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda stack: iam.Role(stack, "Own", assumed_by=LAMBDA), '"lambda.amazonaws.com"'),
        (
            lambda stack: iam.Role(stack, "Own", assumed_by=iam.AccountPrincipal("1" * 12)),
            "another account",
        ),
        (
            lambda stack: iam.Role(stack, "Own", assumed_by=LAMBDA).without_policy_updates(),
            '"lambda.amazonaws.com"',
        ),
        (denying, '"lambda.amazonaws.com", "sagemaker.amazonaws.com"'),
    ],
    ids=["service", "account", "immutable", "denied"],
)
def test_role_without_trust_in_sagemaker_fails_synth(
    stack: cdk.Stack, tmp_path: Path, make: Callable[[cdk.Stack], iam.IRole], names: str
) -> None:
    """Creating the model would fail, so synth names the role,
    its present principals and the fix.
    """
    add_endpoint(stack, tmp_path, role=make(stack))
    with pytest.raises(
        RuntimeError, match=f"the role Test/Own, got the trust policy of {names}; add"
    ):
        synthesize(stack)


def test_role_that_sagemaker_may_assume_is_accepted(stack: cdk.Stack, tmp_path: Path) -> None:
    """One of several principals is enough, also one that is added later;
    tokens and imports are unknown.
    """
    parameter = cdk.CfnParameter(stack, "Principal")
    later = iam.Role(stack, "Later", assumed_by=LAMBDA)
    for name, role in {
        "Both": iam.Role(stack, "Both", assumed_by=iam.CompositePrincipal(LAMBDA, SAGEMAKER)),
        "Added": later,
        "Unknown": iam.Role(
            stack, "Unknown", assumed_by=iam.ServicePrincipal(parameter.value_as_string)
        ),
        "Imported": iam.Role.from_role_arn(
            stack, "Imported", "arn:aws:iam::123456789012:role/Shared"
        ),
    }.items():
        add_endpoint(stack, tmp_path, f"{name}Endpoint", role=role)
    assert later.assume_role_policy is not None
    later.assume_role_policy.add_statements(
        iam.PolicyStatement(actions=["sts:AssumeRole"], principals=[SAGEMAKER])
    )
    synthesize(stack)


def test_role_of_another_account_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """A role cannot be passed to a service of another account;
    each construct with a role says so.
    """
    foreign = iam.Role.from_role_arn(stack, "Foreign", "arn:aws:iam::111122223333:role/Shared")
    repository = add_repository(stack, write_repository(tmp_path / "models"))
    options: dict[str, Any] = {"instance_type": InstanceType.of("ml.c6i.large"), "role": foreign}
    models: dict[str, Any] = {"model_repository": repository, "model": "other"}
    hosts = {"min_instance_count": 1, "max_instance_count": 1}
    message = (
        "^role: SageMaker can only assume a role in the account of the stack, 123456789012, "
        "got 111122223333 "
        r"\(arn:aws:iam::111122223333:role/Shared\); use a role in 123456789012, or remove role$"
    )
    for construct, more in (
        (TritonEndpoint, models),
        (TritonModel, models),
        (TritonComponentEndpoint, hosts),
    ):
        with pytest.raises(InvalidValueError, match=message):
            construct(stack, "Refused", **options, **more)
        assert stack.node.try_find_child("Refused") is None
        construct(stack, construct.__name__, **{**options, "role": None}, **more)


def test_role_of_a_stack_without_an_account_is_accepted(tmp_path: Path) -> None:
    """The account of the stack is known only at deployment."""
    stack = make_stack(environment=None)
    role = iam.Role.from_role_arn(stack, "Foreign", "arn:aws:iam::111122223333:role/Shared")
    add_endpoint(stack, tmp_path, role=role)


def test_lazy_role_takes_policies(stack: cdk.Stack, path: Path) -> None:
    """The CDK creates a lazy role when something refers to it; it gets the permissions then."""
    role = iam.LazyRole(stack, "Lazy", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    add_endpoint(stack, path, model="other", role=role)
    assert not [each for each in warnings(stack) if "takes no policies" in each]
    (policy,) = policies(synthesize(stack)).values()
    (name,) = policy["Properties"]["Roles"]
    assert name["Ref"].startswith("Lazy")
    assert "LoadModel" in str(policy["Properties"]["PolicyDocument"])
