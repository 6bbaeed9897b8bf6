"""Entry point of the function that lets a deployment change the instances of scaled variants.

SageMaker rejects the update of an endpoint while a variant that is removed, or whose instance type changes,
is registered with Application Auto Scaling (SageMaker developer guide, "Update endpoints that use automatic
scaling"). Three types of custom resources work together. One function handles all of them:

``Custom::TritonScalingGuard``
    Is updated before the endpoint. It compares the running instance types with those in the template. It
    deregisters exactly the variants whose instance type changes and the variants that are removed.
``Custom::TritonScalableTarget``, ``Custom::TritonScalingPolicy``
    Are updated after the endpoint. They take the properties of the ``AWS::ApplicationAutoScaling`` types, and
    the variant's instance type. When it changes, they are updated too, and so registered again.

CloudFormation's own types cannot do this. They are not updated when only the endpoint changes. CloudFormation
also identifies a policy by its ARN, and that policy no longer exists once its target has been deregistered.

**Rollback.** A deployment may fail after the guard's update and before the update of the other two. Then
CloudFormation does not update those two. For this reason each update gives the guard a new physical id, which
CloudFormation treats as a replacement. At the very end it deletes the guard that is no longer used. After a
rollback that is the new one. The Parameter Store keeps what was deregistered under that id, and the deletion
registers what is missing again.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

from ..response import Event, Response, handle_request, is_failed_create
from ..retries import make_client
from . import GUARD_TYPE, PARAMETER_FOLDER, POLICY_TYPE, TARGET_TYPE
from .scaling import DIMENSION, NAMESPACE, POLICY_MEMBERS, TARGET_MEMBERS, Scaling, ScalingError, call

LOGGER = logging.getLogger(__name__)


def handler(event: Event, context: Any) -> None:
    """Handle one request of CloudFormation and send the response."""
    handle_request(event, context, _HANDLERS[event["ResourceType"]])


# The guard.


def _guard(event: Event, physical_id: str) -> Response:
    if event["RequestType"] == "Delete":
        _close(event, physical_id)
        return Response(physical_id)
    new_id = _guard_id(event)
    # A guard that is new in the stack deregisters nothing: the registrations belong to something else.
    if event["RequestType"] == "Update" and new_id != physical_id:
        _open(event, new_id)
    return Response(new_id)


def _guard_id(event: Event) -> str:
    """The same for the same properties: a rollback must lead back to the previous id."""
    properties = json.dumps(event["ResourceProperties"], sort_keys=True).encode()
    return f"{event['LogicalResourceId']}-{hashlib.sha256(properties).hexdigest()[:16]}"


def _open(event: Event, guard_id: str) -> None:
    """Deregister the variants that would make SageMaker reject the endpoint's update."""
    scaling, store = Scaling(), _ParameterStore(event["StackId"])
    saved = store.read(guard_id, event["RequestId"])
    described = (scaling.describe(resource_id) for resource_id in _changed_variants(event))
    found = [each for each in described if each is not None]
    known = {each["ResourceId"] for each in saved}
    saved += [each for each in found if each["ResourceId"] not in known]
    store.write(guard_id, event["RequestId"], saved)
    try:
        for each in found:
            scaling.deregister(each["ResourceId"])
            LOGGER.info("deregistered %s", each["ResourceId"])
    except Exception:
        # CloudFormation does not learn the new id from a failure, so it would never delete this guard.
        _restore(scaling, saved)
        raise


def _close(event: Event, guard_id: str) -> None:
    """After a rollback register again what is missing, then forget what was deregistered."""
    store = _ParameterStore(event["StackId"])
    saved = store.read(guard_id)
    if saved and _stack_status(event["StackId"]).startswith("UPDATE_ROLLBACK"):
        _restore(Scaling(), saved)
    store.delete(guard_id)


def _restore(scaling: Scaling, saved: list[dict[str, Any]]) -> None:
    for each in saved:
        scaling.restore(each)
        LOGGER.info("restored %s", each["ResourceId"])


def _changed_variants(event: Event) -> list[str]:
    """The variants whose instance type the deployment changes, and those that it removes."""
    properties = event["ResourceProperties"]
    name = _endpoint_name(event["StackId"], properties["EndpointLogicalId"])
    wanted = properties.get("InstanceTypes") or {}
    before = event["OldResourceProperties"].get("InstanceTypes") or {}
    running = [] if name is None else _running(name)
    changed = sorted(
        {
            variant
            for variant, instance_type in running
            # Only variants that the template changes are registered again afterwards.
            if wanted.get(variant) not in (instance_type, before.get(variant))
        }
    )
    return [f"endpoint/{name}/variant/{variant}" for variant in changed]


def _running(endpoint_name: str) -> list[tuple[str, str | None]]:
    """Names and instance types of the variants, including those of an update in progress."""
    sagemaker = make_client("sagemaker")
    endpoint = call(sagemaker.describe_endpoint, EndpointName=endpoint_name)
    pending = endpoint.get("PendingDeploymentSummary") or {}
    names = {endpoint["EndpointConfigName"], pending.get("EndpointConfigName")} - {None}
    variants: list[tuple[str, str | None]] = []
    for name in sorted(names):
        config = call(sagemaker.describe_endpoint_config, EndpointConfigName=name)
        listed = [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]
        variants += [(each["VariantName"], each.get("InstanceType")) for each in listed]
    return variants


def _endpoint_name(stack_id: str, logical_id: str) -> str | None:
    """The name of the stack's endpoint, or ``None`` if it has not been created yet."""
    for each in _stack_resources(stack_id):
        if each["LogicalResourceId"] == logical_id and each.get("PhysicalResourceId"):
            arn: str = each["PhysicalResourceId"]
            return arn.rpartition("/")[2]
    return None


def _stack_resources(stack_id: str) -> Iterator[dict[str, Any]]:
    """All resources of the stack; DescribeStackResources would return only the first hundred."""
    cloudformation = make_client("cloudformation")
    token: dict[str, str] = {}
    while True:
        page = call(cloudformation.list_stack_resources, StackName=stack_id, **token)
        yield from page["StackResourceSummaries"]
        if "NextToken" not in page:
            return
        token = {"NextToken": page["NextToken"]}


def _stack_status(stack_id: str) -> str:
    (stack,) = call(make_client("cloudformation").describe_stacks, StackName=stack_id)["Stacks"]
    status: str = stack["StackStatus"]
    return status


class _ParameterStore:
    """Keeps what was deregistered until the deployment is over. A request may be handled twice."""

    def __init__(self, stack_id: str) -> None:
        self._client = make_client("ssm")
        self._folder = f"/{PARAMETER_FOLDER}/{stack_id.rpartition('/')[2]}"

    def read(self, guard_id: str, request_id: str | None = None) -> list[dict[str, Any]]:
        """What was saved, by the request with that id if one is given."""
        content = self._content(guard_id)
        if request_id not in (None, content.get("RequestId")):
            return []
        saved: list[dict[str, Any]] = content.get("Saved", [])
        return saved

    def write(self, guard_id: str, request_id: str, saved: list[dict[str, Any]]) -> None:
        content = json.dumps({"RequestId": request_id, "Saved": saved}, separators=(",", ":"))
        if not saved:
            self.delete(guard_id)
            return
        call(
            self._client.put_parameter,
            Name=f"{self._folder}/{guard_id}",
            Value=content,
            Type="String",
            Tier="Intelligent-Tiering",
            Overwrite=True,
        )

    def delete(self, guard_id: str) -> None:
        try:
            call(self._client.delete_parameter, Name=f"{self._folder}/{guard_id}")
        except self._client.exceptions.ParameterNotFound:
            return

    def _content(self, guard_id: str) -> dict[str, Any]:
        try:
            found = call(self._client.get_parameter, Name=f"{self._folder}/{guard_id}")
        except self._client.exceptions.ParameterNotFound:
            return {}
        content: dict[str, Any] = json.loads(found["Parameter"]["Value"])
        return content


# Target and policy.


def _target(event: Event, physical_id: str) -> Response:
    properties, scaling = event["ResourceProperties"], Scaling()
    resource_id = properties["ResourceId"]
    if event["RequestType"] == "Delete":
        if not is_failed_create(physical_id) and not _is_replaced_by_native(event, physical_id):
            scaling.deregister(physical_id.partition("|")[0])
        return Response(physical_id)
    if event["RequestType"] == "Create" and scaling.target(resource_id) is not None:
        raise ScalingError(
            f"{resource_id} is already registered for scaling by something else, which would deregister it "
            "when it is deleted; deploy once without the scaling of this variant, then with it"
        )
    scaling.register(resource_id, {name: properties[name] for name in TARGET_MEMBERS if name in properties})
    scaling.set_actions(resource_id, properties.get("ScheduledActions") or [])
    target_id = "|".join((resource_id, DIMENSION, NAMESPACE))
    return Response(target_id, {"Id": target_id})


def _is_replaced_by_native(event: Event, physical_id: str) -> bool:
    """Whether the stack has CloudFormation's own target instead of this one: the guard was removed."""
    native = ("AWS::ApplicationAutoScaling::ScalableTarget", physical_id)
    resources = _stack_resources(event["StackId"])
    return native in [(each["ResourceType"], each.get("PhysicalResourceId")) for each in resources]


def _policy(event: Event, physical_id: str) -> Response:
    scaling = Scaling()
    if event["RequestType"] == "Delete":
        if not is_failed_create(physical_id):
            resource_id, *_, name = physical_id.split("|")
            scaling.delete_policy(resource_id, name)
        return Response(physical_id)
    properties = event["ResourceProperties"]
    target_id, name = properties["ScalingTargetId"], properties["PolicyName"]
    arn = scaling.put_policy(target_id.partition("|")[0], {each: properties[each] for each in POLICY_MEMBERS})
    return Response(f"{target_id}|{name}", {"Arn": arn})


_HANDLERS: dict[str, Callable[[Event, str], Response]] = {
    GUARD_TYPE: _guard,
    TARGET_TYPE: _target,
    POLICY_TYPE: _policy,
}
