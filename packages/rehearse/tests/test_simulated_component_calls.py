"""Calls and scaling of inference components on the simulated account."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shared_endpoint import (
    NAME,
    READS,
    component,
    deploy,
    described,
    endpoint_with_a_model,
    model,
    name_of,
    policy,
    refusal,
    scaled,
    settle,
    shared,
)

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.behaviour import CALM

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]


def test_component_sleeps_and_is_woken_by_its_alarm(aws: SimulatedAccount) -> None:
    """At zero copies a call is refused; the alarm on such calls fires the
    policy that adds a copy.
    """
    stack = deploy(aws, shared(**scaled()))
    assert stack.status == "CREATE_COMPLETE", stack.reason
    name = name_of(stack)
    endpoint = stack.resources["Endpoint"].physical.attributes["EndpointName"]
    invoke = aws.client("sagemaker-runtime").invoke_endpoint
    assert invoke(EndpointName=endpoint, InferenceComponentName=name, Body=b"x")["Body"].read()
    aws.copy_scaling.scale_in(name)
    settle(aws)
    call = {"EndpointName": endpoint, "InferenceComponentName": name, "Body": b"x"}
    assert "Inference Component has no capacity" in refusal(invoke, **call)
    aws.copy_scaling.evaluate_alarms(name)
    assert described(aws, name)["InferenceComponentStatus"] == "Updating"
    assert invoke(**call)["Body"].read()
    aws.copy_scaling.evaluate_alarms(name)
    assert described(aws, name)["RuntimeConfig"]["CurrentCopyCount"] == 1
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE", stack.reason


def adapter(archive: str = "one.tar.gz", **more: Any) -> dict[str, Any]:
    """An adapter on the component ``One``."""
    specification = {"BaseInferenceComponentName": NAME, **more}
    specification["Container"] = {"ArtifactUrl": f"s3://models/{archive}"}
    properties = {
        "EndpointName": {"Fn::GetAtt": ["Endpoint", "EndpointName"]},
        "Specification": specification,
    }
    return {
        "Type": "AWS::SageMaker::InferenceComponent",
        "Properties": properties,
        "DependsOn": ["Policy"],
    }


def test_adapter_uses_the_copies_of_its_base(aws: SimulatedAccount) -> None:
    """It reserves nothing, can be called and updated, and keeps its base from being deleted."""
    resources = shared(Adapter=adapter())
    resources["One"]["Properties"]["Specification"]["ComputeResourceRequirements"] = {
        "MinMemoryRequiredInMb": 1024,
        "NumberOfAcceleratorDevicesRequired": 4,  # the whole instance
    }
    stack = deploy(aws, resources)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    endpoint = stack.resources["Endpoint"].physical.attributes["EndpointName"]
    name = stack.resources["Adapter"].physical.id.rpartition("/")[2]
    invoke = aws.client("sagemaker-runtime").invoke_endpoint
    assert invoke(EndpointName=endpoint, InferenceComponentName=name, Body=b"x")["Body"].read()
    delete = aws.client("sagemaker").delete_inference_component
    assert "is a base inference component" in refusal(delete, InferenceComponentName=name_of(stack))
    changed = {**resources, "Adapter": adapter("two.tar.gz")}
    assert deploy(aws, changed, stack.name).status == "UPDATE_COMPLETE", stack.reason
    container = described(aws, name)["Specification"]["Container"]
    assert container["ArtifactUrl"] == "s3://models/two.tar.gz"
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE", stack.reason


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            adapter(ComputeResourceRequirements={"MinMemoryRequiredInMb": 128}),
            "except for adapters",
        ),
        (adapter(BaseInferenceComponentName="none"), 'Could not find inference component "none"'),
    ],
)
def test_adapter_is_refused(aws: SimulatedAccount, changed: dict[str, Any], reason: str) -> None:
    """An adapter has no requirements, and its base exists."""
    stack = deploy(aws, shared(Adapter=changed))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert reason in str(stack.reason)


def test_role_must_be_able_to_read_the_adapter(aws: SimulatedAccount) -> None:
    """The archive of an adapter is read with the role of the endpoint."""
    aws.client("s3").create_bucket(Bucket="others")
    aws.client("s3").put_object(Bucket="others", Key="adapter.tar.gz", Body=b"x")
    unreadable = adapter()
    unreadable["Properties"]["Specification"]["Container"]["ArtifactUrl"] = (
        "s3://others/adapter.tar.gz"
    )
    stack = deploy(aws, shared(Adapter=unreadable))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "s3://others/adapter.tar.gz: 403" in str(stack.reason)


def test_runtime_checks_the_header(aws: SimulatedAccount) -> None:
    """Required on endpoints for components, of which the name is one, and not allowed on others."""
    stack, other = deploy(aws, shared()), endpoint_with_a_model()
    del other["One"]
    plain = deploy(aws, other)
    invoke = aws.client("sagemaker-runtime").invoke_endpoint
    endpoint, single = (
        each.resources["Endpoint"].physical.attributes["EndpointName"] for each in (stack, plain)
    )
    assert "header is required" in refusal(invoke, EndpointName=endpoint, Body=b"x")
    for name, target, message in (
        ("no", endpoint, "not found"),
        (name_of(stack), single, "not allowed"),
    ):
        call = {"EndpointName": target, "InferenceComponentName": name, "Body": b"x"}
        assert message in refusal(invoke, **call)


@pytest.mark.parametrize("missing", ["endpoint", "inference-component", None])
def test_call_needs_permission_for_endpoint_and_component(
    aws: SimulatedAccount, missing: str | None
) -> None:
    """No source says that one of the two is enough."""
    stack = deploy(aws, shared())
    name = name_of(stack)
    endpoint = stack.resources["Endpoint"].physical.attributes["EndpointName"]
    prefix = f"arn:aws:sagemaker:{aws.api.region}:{aws.api.account}"
    arns = {
        "endpoint": f"{prefix}:endpoint/{endpoint.lower()}",
        "inference-component": f"{prefix}:inference-component/{name}",
    }
    allowed = [("sagemaker:InvokeEndpoint", arn) for kind, arn in arns.items() if kind != missing]
    changed = shared(Policy=policy(*READS, *allowed))
    assert deploy(aws, changed, stack.name).status == "UPDATE_COMPLETE", stack.reason
    role = aws.client("iam").get_role(RoleName=stack.resources["Role"].physical.id)["Role"]["Arn"]
    credentials = aws.access.assume(role, **aws.execution_roles.as_sagemaker())
    invoke = aws.client("sagemaker-runtime", credentials).invoke_endpoint
    call = {"EndpointName": endpoint, "InferenceComponentName": name, "Body": b"x"}
    if missing is None:
        assert invoke(**call)["Body"].read()
    else:
        assert "not authorized to perform: sagemaker:InvokeEndpoint" in refusal(invoke, **call)


@pytest.mark.parametrize(("resets", "copies"), [(False, 0), (True, 1)])
def test_update_of_a_sleeping_component(aws: SimulatedAccount, resets: bool, copies: int) -> None:
    """Whether CloudFormation sends the number of copies too is not settled;
    both end in a complete update.
    """
    aws.behaviour = replace(CALM, component_update_resets_copies=resets)
    stack = deploy(aws, shared(**scaled()))
    aws.copy_scaling.scale_in(name_of(stack))
    settle(aws)
    changed = shared(**scaled(), Two=model("two.tar.gz"), One=component("Two"))
    assert deploy(aws, changed, stack.name).status == "UPDATE_COMPLETE", stack.reason
    assert described(aws, name_of(stack))["RuntimeConfig"]["CurrentCopyCount"] == copies


def test_account_without_models_refuses_every_call(aws: SimulatedAccount) -> None:
    """An asynchronous call gets the same refusal,
    and not the place of an answer that never comes.
    """
    runtime = aws.client("sagemaker-runtime")
    aws.runtime.refusal = "runs no models"
    try:
        for call, body in (
            (runtime.invoke_endpoint, {"Body": b"x"}),
            (runtime.invoke_endpoint_async, {"InputLocation": "s3://b/k"}),
        ):
            assert "runs no models" in refusal(call, EndpointName="any", **body)
    finally:
        aws.runtime.refusal = None
