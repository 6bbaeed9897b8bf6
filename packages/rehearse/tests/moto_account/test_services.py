"""What services do in the simulated account, where moto itself does something else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_rehearse import SimulatedAccount

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]
STATEMENT = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
OLDER: list[dict[str, Any]] = [
    {"Statement": [STATEMENT]},
    {"Version": "2008-10-17", "Statement": [STATEMENT]},
]


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        account.client("iam").create_role(RoleName="owner", AssumeRolePolicyDocument="{}")
        account.client("iam").create_user(UserName="owner")
        account.client("iam").create_group(GroupName="owner")
        yield account


@pytest.mark.parametrize("document", OLDER, ids=["default", "written"])
@pytest.mark.parametrize("kind", ["role", "user", "group"])
def test_an_inline_policy_may_have_the_older_version(
    aws: SimulatedAccount, kind: str, document: dict[str, Any]
) -> None:
    """IAM takes an inline policy of the older version, and keeps it as it was sent."""
    iam = aws.client("iam")
    owner = {f"{kind.capitalize()}Name": "owner", "PolicyName": "read"}
    getattr(iam, f"put_{kind}_policy")(**owner, PolicyDocument=json.dumps(document))
    assert getattr(iam, f"get_{kind}_policy")(**owner)["PolicyDocument"] == document


def test_an_inline_policy_that_is_no_json_is_refused(aws: SimulatedAccount) -> None:
    """A policy that cannot be read is refused as before."""
    with pytest.raises(ClientError, match="MalformedPolicyDocument"):
        aws.client("iam").put_role_policy(RoleName="owner", PolicyName="x", PolicyDocument="{")


def test_an_update_keeps_the_arn_of_a_scaling_policy(aws: SimulatedAccount) -> None:
    """PutScalingPolicy gives an updated policy the ARN that its alarms name."""
    scaling = aws.client("application-autoscaling")
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/digits/variant/all",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling.register_scalable_target(**target, MinCapacity=1, MaxCapacity=2)

    def put(seconds: int) -> str:
        steps = {"AdjustmentType": "ChangeInCapacity", "Cooldown": seconds, "StepAdjustments": []}
        answer = scaling.put_scaling_policy(
            **target,
            PolicyName="steps",
            PolicyType="StepScaling",
            StepScalingPolicyConfiguration=steps,
        )
        return str(answer["PolicyARN"])

    first = put(60)
    assert put(120) == first
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    assert policy["PolicyARN"] == first
    assert policy["StepScalingPolicyConfiguration"]["Cooldown"] == 120
