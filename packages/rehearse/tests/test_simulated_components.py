"""Inference components on the simulated account:
what SageMaker and CloudFormation accept and refuse.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from moto.sagemaker.exceptions import ValidationError
from shared_endpoint import (
    IMAGE,
    Resources,
    component,
    deploy,
    described,
    endpoint_with_a_model,
    model,
    name_of,
    policy,
    refusal,
    settle,
    shared,
)

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.endpoints.instance_pools import check_pools
from cdk_rehearse.errors import StackError

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]


def test_component_is_created_updated_and_deleted_with_its_endpoint(aws: SimulatedAccount) -> None:
    """A new model goes to the component in place, and the deletion takes components first."""
    stack = deploy(aws, shared())
    assert stack.status == "CREATE_COMPLETE", stack.reason
    name = name_of(stack)
    before = described(aws, name)
    assert (before["InferenceComponentStatus"], before["RuntimeConfig"]["CurrentCopyCount"]) == (
        "InService",
        1,
    )
    (listed,) = aws.client("sagemaker").list_inference_components(StatusEquals="InService")[
        "InferenceComponents"
    ]
    assert listed["InferenceComponentName"] == name
    changed = {**shared(Two=model("two.tar.gz")), "One": component("Two")}
    del changed["Model"]
    assert deploy(aws, changed, stack.name).status == "UPDATE_COMPLETE", stack.reason
    assert name_of(stack) == name
    assert (
        described(aws, name)["Specification"]["ModelName"] != before["Specification"]["ModelName"]
    )
    assert aws.fleets.losses == []
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE", stack.reason
    deletions = [operation for _, operation, _ in aws.api.calls if operation.startswith("Delete")]
    assert deletions.index("DeleteInferenceComponent") < deletions.index("DeleteEndpoint")


def test_copies_and_tags_change_in_place(aws: SimulatedAccount) -> None:
    """The number of copies alone, then tags alone."""
    stack = deploy(aws, shared())
    resources = shared(One=component("Model", copies=3))
    resources["One"]["Properties"]["Tags"] = [{"Key": "team", "Value": "nlp"}]
    assert deploy(aws, resources, stack.name).status == "UPDATE_COMPLETE", stack.reason
    assert described(aws, name_of(stack))["RuntimeConfig"]["CurrentCopyCount"] == 3
    arn = stack.resources["One"].physical.id
    assert {"Key": "team", "Value": "nlp"} in aws.client("sagemaker").list_tags(ResourceArn=arn)[
        "Tags"
    ]


def _changed(path: str, value: Any) -> Resources:
    """The resources with one value, which a path of keys leads to, set or (None) removed."""
    resources: Any = shared()
    *parents, last = [int(each) if each.isdecimal() else each for each in path.split("/")]
    found = resources
    for each in parents:
        found = found.setdefault(each, {}) if isinstance(found, dict) else found[each]
    if value is None:
        del found[last]
    else:
        found[last] = value
    kept: Resources = resources
    return kept


_VARIANT = "Config/Properties/ProductionVariants/0"
QUEUE = {"OutputConfig": {"S3OutputPath": "s3://b/o"}}
CAPTURED = {"DestinationS3Uri": "s3://b/d", "CaptureOptions": [{"CaptureMode": "Input"}]}
CAPTURE = {"InitialSamplingPercentage": 1, **CAPTURED}


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        (endpoint_with_a_model(), "Inference Components are not supported in this Endpoint."),
        (
            _changed(f"{_VARIANT}/ModelName", "m"),
            "only supported for inference component endpoints",
        ),
        (_changed("Config/Properties/ExecutionRoleArn", None), "ExecutionRoleArn is required"),
        (_changed(f"{_VARIANT}/InitialVariantWeight", 1), "has instances, and no weight"),
        (
            _changed("One/Properties/RuntimeConfig/CopyCount", 0),
            "copy count an integer larger than 0",
        ),
        (
            _changed(f"{_VARIANT}/InstanceType", "ml.c6i.xlarge"),
            "is not supported on ml.c6i.xlarge",
        ),
        (
            _changed("Model/Properties/EnableNetworkIsolation", True),
            "EnableNetworkIsolation differ",
        ),
        (_changed("Model/Properties/PrimaryContainer/Mode", "MultiModel"), "contains one model"),
        (_changed("Policy", policy(("ecr:*", "*"))), "Could not access model data"),
        (
            _changed("Config/Properties/AsyncInferenceConfig", QUEUE),
            "AsyncInferenceConfig is not supported",
        ),
        (
            _changed("Config/Properties/DataCaptureConfig", CAPTURE),
            "DataCaptureConfig is not supported",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_creation_is_refused(aws: SimulatedAccount, resources: Resources, reason: str) -> None:
    """The stack is rolled back with SageMaker's or CloudFormation's reason, and nothing is left."""
    stack = deploy(aws, copy.deepcopy(resources))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert reason in stack.reason
    assert aws.components.all == {}


def test_wrong_requests_are_refused(aws: SimulatedAccount) -> None:
    """One change each to a request that is accepted."""
    stack = deploy(aws, shared())
    endpoint = stack.resources["Endpoint"].physical.attributes["EndpointName"]
    model_name = stack.resources["Model"].physical.attributes["ModelName"]
    needs = {"MinMemoryRequiredInMb": 8192, "NumberOfAcceleratorDevicesRequired": 1}
    good = {"ModelName": model_name, "ComputeResourceRequirements": needs}

    def create(specification: dict[str, Any] = good, **changes: Any) -> None:
        request = {"EndpointName": endpoint, "RuntimeConfig": {"CopyCount": 1}, **changes}
        kept = {name: value for name, value in request.items() if value is not None}
        call = partial(aws.api.call, "sagemaker", "CreateInferenceComponent")
        call(InferenceComponentName="two", Specification=specification, **kept)

    def needing(**changes: Any) -> dict[str, Any]:
        changed = {name: value for name, value in {**needs, **changes}.items() if value is not None}
        return {**good, "ComputeResourceRequirements": changed}

    container = {"Image": IMAGE, "Environment": {f"NAME{number}": "x" for number in range(17)}}
    refused: list[tuple[Callable[[], None], str]] = [
        (partial(create, RuntimeConfig=None), "RuntimeConfig is missing"),
        (partial(create, VariantName="Other"), "Could not find variant Other"),
        (partial(create, EndpointName="other"), "Could not find endpoint"),
        (partial(create, {"ModelName": model_name}), "ComputeResourceRequirements is required"),
        (
            partial(create, {"ComputeResourceRequirements": needs}),
            "Exactly one of ModelName and Container",
        ),
        (
            partial(create, {"Container": container, "ComputeResourceRequirements": needs}),
            "up to 16 entries",
        ),
        (
            partial(create, needing(MinMemoryRequiredInMb=None)),
            "required member MinMemoryRequiredInMb",
        ),
        (
            partial(create, needing(NumberOfAcceleratorDevicesRequired=0.5)),
            "must be within {'min': 1}",
        ),
    ]
    for call, reason in refused:
        with pytest.raises(StackError, match=re.escape(reason)):
            call()
    for specification in (
        needing(NumberOfAcceleratorDevicesRequired=5),
        needing(MinMemoryRequiredInMb=300_000),
        needing(NumberOfCpuCoresRequired=49),
    ):
        create(specification)
        settle(aws)
        found = described(aws, "two")
        assert found["InferenceComponentStatus"] == "Failed"
        assert found["FailureReason"].startswith(
            "There is not enough hardware resources on the instances"
        )
        aws.client("sagemaker").delete_inference_component(InferenceComponentName="two")
    create()


def test_nothing_is_changed_while_an_operation_is_in_progress(aws: SimulatedAccount) -> None:
    """After a scaling action, an update and a deletion are refused until it is complete."""
    stack = deploy(aws, shared())
    name, sagemaker = name_of(stack), aws.client("sagemaker")
    sagemaker.update_inference_component_runtime_config(
        InferenceComponentName=name, DesiredRuntimeConfig={"CopyCount": 2}
    )
    message = refusal(sagemaker.delete_inference_component, InferenceComponentName=name)
    assert message.startswith("Cannot delete inference component")
    assert message.endswith("while it is in state UPDATE_RC_IN_PROGRESS")
    counts = {"RuntimeConfig": {"CopyCount": 1}}
    assert "Cannot update" in refusal(
        sagemaker.update_inference_component, InferenceComponentName=name, **counts
    )
    # CloudFormation may not try again, so the deletion of a stack right after scaling can fail.
    assert aws.destroy(stack.name).status == "DELETE_FAILED"
    settle(aws)
    assert described(aws, name)["RuntimeConfig"]["CurrentCopyCount"] == 2
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE", stack.reason


def rolling(type: str, value: int, *, copies: int = 4) -> Resources:
    resources = shared(2, Two=model("two.tar.gz"), One=component("Two", copies=copies))
    size = {"Type": type, "Value": value}
    rolling_update = {"MaximumBatchSize": size, "WaitIntervalInSeconds": 0}
    resources["One"]["Properties"]["DeploymentConfig"] = {"RollingUpdatePolicy": rolling_update}
    return resources


@pytest.mark.parametrize(
    ("type", "value", "steps"), [("COPY_COUNT", 1, 4), ("CAPACITY_PERCENT", 50, 2)]
)
def test_rolling_update_replaces_batches(
    aws: SimulatedAccount, type: str, value: int, steps: int
) -> None:
    """The component is Updating until the last batch is replaced."""
    stack = deploy(aws, shared(2, One=component("Model", copies=4)))
    asked = len(aws.api.calls)
    assert deploy(aws, rolling(type, value), stack.name).status == "UPDATE_COMPLETE", stack.reason
    operations = [operation for _, operation, _ in aws.api.calls[asked:]]
    waiting = operations[operations.index("UpdateInferenceComponent") :]
    assert waiting.count("DescribeInferenceComponent") == steps + 1
    assert described(aws, name_of(stack))["LastDeploymentConfig"] is not None


def test_a_refused_rolling_update_leaves_the_component_as_it_was(aws: SimulatedAccount) -> None:
    """A batch that is larger than the component is refused before anything changes."""
    stack = deploy(aws, shared(2, One=component("Model", copies=2)))
    name = name_of(stack)
    before = described(aws, name)
    changed = {"StartupParameters": {"ModelDataDownloadTimeoutInSeconds": 600}}
    message = refusal(
        aws.client("sagemaker").update_inference_component,
        InferenceComponentName=name,
        Specification={**before["Specification"], **changed},
        RuntimeConfig={"CopyCount": 1},
        DeploymentConfig={
            "RollingUpdatePolicy": {
                "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 3},
                "WaitIntervalInSeconds": 0,
            }
        },
    )
    assert message == "MaximumBatchSize 3 is more than the 2 copies."
    after = described(aws, name)
    for answer in (before, after):
        del answer["ResponseMetadata"]
    assert after == before


def test_update_needs_room_for_the_copies_that_it_replaces(aws: SimulatedAccount) -> None:
    """Without a rolling update all copies run twice;
    the old ones keep serving where there is no room.
    """
    stack = deploy(aws, shared(1, One=component("Model", copies=3)))
    changed = shared(1, Two=model("two.tar.gz"), One=component("Two", copies=3))
    assert deploy(aws, changed, stack.name).status == "UPDATE_ROLLBACK_COMPLETE"
    assert (
        "There is not enough hardware resources on the instances for this endpoint" in stack.reason
    )
    found = described(aws, name_of(stack))
    assert (found["InferenceComponentStatus"], found["RuntimeConfig"]["CurrentCopyCount"]) == (
        "InService",
        3,
    )


def with_four_copies(**properties: Any) -> Resources:
    """An endpoint for two instances with a component of four copies,
    which has these properties too.
    """
    resources = shared(2, One=component("Model", copies=4))
    resources["One"]["Properties"] |= properties
    return resources


LARGER = {
    **_changed(f"{_VARIANT}/InstanceType", "ml.g5.24xlarge"),
    "One": component("Model", copies=4),
}
ALONE = rolling("COPY_COUNT", 1)["One"]["Properties"]["DeploymentConfig"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (rolling("COPY_COUNT", 5), "is more than the 4 copies"),
        (rolling("CAPACITY_PERCENT", 60), "between 5% to 50%"),
        (with_four_copies(DeploymentConfig=ALONE), "requires RuntimeConfig or a Specification"),
        (
            with_four_copies(InferenceComponentName="other"),
            "No source says what a change of Inference",
        ),
        (LARGER, "InstanceType cannot change while inference components use the endpoint"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_update_is_refused(aws: SimulatedAccount, changed: Resources, reason: str) -> None:
    """Wrong batches are rolled back, and so is what no source settles."""
    stack = deploy(aws, with_four_copies())
    assert deploy(aws, changed, stack.name).status == "UPDATE_ROLLBACK_COMPLETE"
    assert reason in stack.reason


def test_components_outlive_their_endpoint(aws: SimulatedAccount) -> None:
    """DeleteEndpoint does not delete them, and their names stay taken."""
    resources = shared()
    resources["One"]["Properties"]["InferenceComponentName"] = "kept"
    stack = deploy(aws, resources)
    sagemaker = aws.client("sagemaker")
    model_name = described(aws, "kept")["Specification"]["ModelName"]
    sagemaker.delete_endpoint(
        EndpointName=stack.resources["Endpoint"].physical.attributes["EndpointName"]
    )
    assert described(aws, "kept")["InferenceComponentStatus"] == "InService"
    assert "in use by inference component kept" in refusal(
        sagemaker.delete_model, ModelName=model_name
    )
    again = deploy(aws, copy.deepcopy(resources))
    assert again.reason == f"One: kept already exists in stack {stack.id}"


def pool(name: str, priority: int) -> dict[str, Any]:
    return {"InstanceType": name, "Priority": priority}


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        (
            {"InstancePools": [pool("ml.g5.xlarge", 1)], "InstanceType": "ml.g5.xlarge"},
            "together with Ins",
        ),
        (
            {"InstancePools": [pool("ml.g5.xlarge", 1)], "ServerlessConfig": {}},
            "together with InstanceType",
        ),
        ({"InstancePools": []}, "1 to 5 members"),
        ({"InstancePools": [pool(f"ml.g5.{n}xlarge", n) for n in range(1, 7)]}, "1 to 5 members"),
        (
            {"InstancePools": [pool("ml.g5.xlarge", 1), pool("ml.g5.xlarge", 2)]},
            "Each InstanceType",
        ),
        ({"InstancePools": [pool("ml.g5.xlarge", 1), pool("ml.g6.xlarge", 1)]}, "Each Priority"),
    ],
)
def test_pools_that_are_refused(variant: dict[str, Any], message: str) -> None:
    """What SageMaker documents as an error, and what it does not document."""
    with pytest.raises(ValidationError) as found:
        check_pools([variant])
    assert message in str(found.value)


def test_pools_that_are_accepted() -> None:
    """Several types with their priorities, and variants without pools."""
    check_pools(
        [
            {"InstancePools": [pool("ml.g5.xlarge", 2), pool("ml.g6.xlarge", 1)]},
            {"InstanceType": "a"},
        ]
    )
