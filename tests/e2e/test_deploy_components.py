"""The example of inference components: deployed, put to sleep, woken,
updated and destroyed on loopback.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from deploy_twice import inventory, synthesize_apps

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_engine")]

APP, STACK = "inference_components", "SharedGpus"


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The example, and the same with new versions of its models."""
    folder = tmp_path_factory.mktemp("components")
    return {
        version: synthesize_apps(folder / version, [APP], changes_models=version == "after") / APP
        for version in ("before", "after")
    }


def test_example_sleeps_wakes_is_updated_and_destroyed(
    aws: SimulatedAccount, assemblies: dict[str, Path]
) -> None:
    """A sleeping component is woken by the calls of a role with grant_invoke,
    and updated in place.
    """
    before = inventory(aws)
    stack = aws.deploy(assemblies["before"], STACK)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    digits, alerts = (stack.output_values[f"{name}Component"] for name in ("Digits", "Alerts"))
    models = {name: model_of(aws, name) for name in (digits, alerts)}
    for name in (digits, alerts):
        aws.copy_scaling.scale_in(name)
        assert copies_after_change(aws, name) == 0
    call = caller_of(aws, stack, "Digits")
    with pytest.raises(
        ClientError, match="Inference Component has no capacity to process this request"
    ):
        call(InferenceComponentName=digits)
    with pytest.raises(ClientError, match="not authorized to perform"):
        call(InferenceComponentName=alerts)
    aws.copy_scaling.evaluate_alarms(digits)
    assert copies_after_change(aws, digits) == 1
    assert call(InferenceComponentName=digits)["Body"].read()

    assert aws.deploy(assemblies["after"], STACK).status == "UPDATE_COMPLETE", stack.reason
    assert [model_of(aws, name) == models[name] for name in (digits, alerts)] == [False, False]
    assert [copies_after_change(aws, name) for name in (digits, alerts)] == [1, 0]
    assert aws.fleets.losses == []
    assert aws.destroy(STACK).status == "DELETE_COMPLETE", stack.reason
    assert inventory(aws) == before


def describe(aws: SimulatedAccount, name: str) -> dict[str, Any]:
    found: dict[str, Any] = aws.client("sagemaker").describe_inference_component(
        InferenceComponentName=name
    )
    return found


def model_of(aws: SimulatedAccount, name: str) -> str:
    return str(describe(aws, name)["Specification"]["ModelName"])


def copies_after_change(aws: SimulatedAccount, name: str) -> int:
    """The copies of a component when the change that is in progress is complete."""
    while describe(aws, name)["InferenceComponentStatus"] != "InService":
        pass
    return int(describe(aws, name)["RuntimeConfig"]["CurrentCopyCount"])


def caller_of(aws: SimulatedAccount, stack: Stack, component: str) -> Any:
    """Calls the endpoint with the role to which the example grants this component."""
    (role,) = [
        each.physical.attributes["Arn"]
        for logical_id, each in stack.resources.items()
        if each.request.type == "AWS::IAM::Role" and logical_id.startswith(f"{component}Caller")
    ]
    (endpoint,) = [
        each.physical.attributes["EndpointName"]
        for each in stack.resources.values()
        if each.request.type == "AWS::SageMaker::Endpoint"
    ]
    credentials = aws.access.assume(role, service="lambda.amazonaws.com", context={})
    invoke = aws.client("sagemaker-runtime", credentials).invoke_endpoint
    return lambda **target: invoke(EndpointName=endpoint, Body=b"x", **target)
