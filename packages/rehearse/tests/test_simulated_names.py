"""Names and ARNs of endpoints in the simulated account, as SageMaker has them."""

from __future__ import annotations

from typing import Any

import pytest
from shared_endpoint import READS, deploy, policy, refusal, shared

from cdk_rehearse.account import SimulatedAccount

NAME = "DigitsProd"


def named(**more: Any) -> dict[str, Any]:
    """The endpoint of the tests, with a name that has capital letters."""
    resources = shared(**more)
    resources["Endpoint"]["Properties"]["EndpointName"] = NAME
    return resources


def test_arn_is_in_lower_case(aws: SimulatedAccount) -> None:
    """The ARN has the name in lower case; lists and descriptions have it as it was given, and
    each request finds the endpoint in any case.
    """
    stack = deploy(aws, named())
    arn = stack.resources["Endpoint"].physical.id
    assert arn.endswith(":endpoint/digitsprod")
    sagemaker = aws.client("sagemaker")
    (listed,) = sagemaker.list_endpoints()["Endpoints"]
    assert (listed["EndpointName"], listed["EndpointArn"]) == (NAME, arn)
    assert sagemaker.describe_endpoint(EndpointName="digitsprod")["EndpointName"] == NAME
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "b"}])
    assert {"Key": "a", "Value": "b"} in sagemaker.list_tags(ResourceArn=arn)["Tags"]


@pytest.mark.parametrize("letters", [NAME, NAME.lower()])
def test_permission_is_compared_letter_by_letter(aws: SimulatedAccount, letters: str) -> None:
    """A policy for the name with its capital letters allows no call."""
    prefix = f"arn:aws:sagemaker:{aws.api.region}:{aws.api.account}"
    allowed = [
        ("sagemaker:InvokeEndpoint", f"{prefix}:endpoint/{letters}"),
        ("sagemaker:InvokeEndpoint", f"{prefix}:inference-component/*"),
    ]
    stack = deploy(aws, named(Policy=policy(*READS, *allowed)))
    role = aws.client("iam").get_role(RoleName=stack.resources["Role"].physical.id)["Role"]["Arn"]
    credentials = aws.access.assume(role, **aws.execution_roles.as_sagemaker())
    invoke = aws.client("sagemaker-runtime", credentials).invoke_endpoint
    component = stack.resources["One"].physical.id.rpartition("/")[2]
    call = {"EndpointName": NAME, "InferenceComponentName": component, "Body": b"x"}
    if letters == NAME:
        assert "not authorized to perform: sagemaker:InvokeEndpoint" in refusal(invoke, **call)
    else:
        assert invoke(**call)["Body"].read()
