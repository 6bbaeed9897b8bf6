"""CloudFormation custom resources that let a deployment change the instances of scaled variants.

SageMaker refuses to update an endpoint while a variant whose instance type changes, or that goes, is
registered with Application Auto Scaling (SageMaker developer guide, "Update endpoints that use automatic
scaling"). Three types work together; one function answers for all of them:

``Custom::TritonScalingGuard``
    Comes before the endpoint. When its properties change it compares the instance types that the endpoint
    runs with those that it is about to get, and deregisters exactly the variants that change or go.
``Custom::TritonScalableTarget``, ``Custom::TritonScalingPolicy``
    Come after the endpoint and take the properties of the types of ``AWS::ApplicationAutoScaling``, and the
    variant's instance type, so that they are updated, and thereby registered again, when it changes.

CloudFormation's own types would not do: they are not updated when only the endpoint changes, and a policy is
known to them by its ARN, which belongs to a policy that is gone once its target has been deregistered.

**Rollback.** A deployment may fail after the guard and before the other two, which then hear nothing of it.
Hence each change gives the guard another physical id: CloudFormation takes it for a replacement, and removes
the one that is left over after all else is done, which is the new one after a rollback. What was deregistered
is kept in the parameter store under that id until then, and what is missing is put back.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .scaling import DIMENSION, NAMESPACE, Scaling, ScalingError, client, persistently

LOGGER = logging.getLogger(__name__)
logging.getLogger(__package__).setLevel(logging.INFO)

REASON_CHARACTERS = 2_000
"""CloudFormation refuses an answer above 4,096 bytes."""
RESPONSE_ATTEMPTS = 4
_FAILED = "failed"

Event = Mapping[str, Any]
Answer = tuple[str, dict[str, Any]]
"""A physical id, and the attributes of the resource."""


def handler(event: Event, context: Any) -> None:
    """Serve one request of CloudFormation; answer it, whatever happens."""
    physical_id = event.get("PhysicalResourceId") or f"{event['LogicalResourceId']}-{_FAILED}"
    try:
        physical_id, data = _SERVED[event["ResourceType"]](event, physical_id)
    except Exception as error:
        LOGGER.exception("request %s failed", event.get("RequestId"))
        _respond(event, "FAILED", physical_id, reason=_reason(error, context))
    else:
        _respond(event, "SUCCESS", physical_id, data=data)


# The guard.


def _guard(event: Event, physical_id: str) -> Answer:
    if event["RequestType"] == "Delete":
        _leave(event, physical_id)
        return physical_id, {}
    new_id = _guard_id(event)
    # A guard that is new to the stack deregisters nothing: what is registered is not its own.
    if event["RequestType"] == "Update" and new_id != physical_id:
        _open(event, new_id)
    return new_id, {}


def _guard_id(event: Event) -> str:
    """The same for the same properties: a rollback has to lead back to the id that there was."""
    properties = json.dumps(event["ResourceProperties"], sort_keys=True).encode()
    return f"{event['LogicalResourceId']}-{hashlib.sha256(properties).hexdigest()[:16]}"


def _open(event: Event, guard_id: str) -> None:
    """Deregister what stands in the way of the endpoint's update."""
    scaling, memory = Scaling(), _Memory(event["StackId"])
    saved = memory.read(guard_id) if memory.is_of(guard_id, event["RequestId"]) else []
    described = (scaling.describe(resource_id) for resource_id in _in_the_way(event))
    found = [each for each in described if each is not None]
    known = {each["ResourceId"] for each in saved}
    saved += [each for each in found if each["ResourceId"] not in known]
    memory.write(guard_id, event["RequestId"], saved)
    try:
        for each in found:
            scaling.deregister(each["ResourceId"])
            LOGGER.info("deregistered %s", each["ResourceId"])
    except Exception:
        # The id is not taken, so that nobody would come back for what is deregistered already.
        _restore(scaling, saved)
        raise


def _leave(event: Event, guard_id: str) -> None:
    """Forget what was deregistered; after a rollback put back what is missing."""
    memory = _Memory(event["StackId"])
    saved = memory.read(guard_id)
    if saved and _stack_status(event["StackId"]).startswith("UPDATE_ROLLBACK"):
        _restore(Scaling(), saved)
    memory.forget(guard_id)


def _restore(scaling: Scaling, saved: list[dict[str, Any]]) -> None:
    for each in saved:
        scaling.restore(each)
        LOGGER.info("restored %s", each["ResourceId"])


def _in_the_way(event: Event) -> list[str]:
    """The variants whose instance type the deployment changes, and those that it removes."""
    properties = event["ResourceProperties"]
    name = _endpoint_name(event["StackId"], properties["EndpointLogicalId"])
    wanted = properties.get("InstanceTypes") or {}
    before = event["OldResourceProperties"].get("InstanceTypes") or {}
    running = [] if name is None else _running(name)
    changed = sorted(
        {
            variant
            for variant, kind in running
            # Only what the template changes is registered again afterwards.
            if wanted.get(variant) not in (kind, before.get(variant))
        }
    )
    return [f"endpoint/{name}/variant/{variant}" for variant in changed]


def _running(endpoint_name: str) -> list[tuple[str, str | None]]:
    """Names and instance types of the variants, with those of an update that is under way."""
    sagemaker = client("sagemaker")
    endpoint = persistently(sagemaker.describe_endpoint, EndpointName=endpoint_name)
    pending = endpoint.get("PendingDeploymentSummary") or {}
    names = {endpoint["EndpointConfigName"], pending.get("EndpointConfigName")} - {None}
    variants: list[tuple[str, str | None]] = []
    for name in sorted(names):
        config = persistently(sagemaker.describe_endpoint_config, EndpointConfigName=name)
        listed = [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]
        variants += [(each["VariantName"], each.get("InstanceType")) for each in listed]
    return variants


def _endpoint_name(stack_id: str, logical_id: str) -> str | None:
    """The endpoint that the stack has now; it may not have been made yet."""
    for each in _stack_resources(stack_id):
        if each["LogicalResourceId"] == logical_id and each.get("PhysicalResourceId"):
            arn: str = each["PhysicalResourceId"]
            return arn.rpartition("/")[2]
    return None


def _stack_resources(stack_id: str) -> Iterator[dict[str, Any]]:
    """All of them: DescribeStackResources would leave out what comes after the first hundred."""
    cloudformation = client("cloudformation")
    token: dict[str, str] = {}
    while True:
        page = persistently(cloudformation.list_stack_resources, StackName=stack_id, **token)
        yield from page["StackResourceSummaries"]
        if "NextToken" not in page:
            return
        token = {"NextToken": page["NextToken"]}


def _stack_status(stack_id: str) -> str:
    (stack,) = persistently(client("cloudformation").describe_stacks, StackName=stack_id)["Stacks"]
    status: str = stack["StackStatus"]
    return status


class _Memory:
    """What was deregistered, until the deployment is over. A request may be served twice."""

    def __init__(self, stack_id: str) -> None:
        self._client = client("ssm")
        self._folder = f"/constructs-triton/scaling-guard/{stack_id.rpartition('/')[2]}"

    def read(self, guard_id: str) -> list[dict[str, Any]]:
        saved: list[dict[str, Any]] = self._content(guard_id).get("Saved", [])
        return saved

    def is_of(self, guard_id: str, request_id: str) -> bool:
        return bool(self._content(guard_id).get("RequestId") == request_id)

    def write(self, guard_id: str, request_id: str, saved: list[dict[str, Any]]) -> None:
        content = json.dumps({"RequestId": request_id, "Saved": saved}, separators=(",", ":"))
        if not saved:
            self.forget(guard_id)
            return
        persistently(
            self._client.put_parameter,
            Name=f"{self._folder}/{guard_id}",
            Value=content,
            Type="String",
            Tier="Intelligent-Tiering",
            Overwrite=True,
        )

    def forget(self, guard_id: str) -> None:
        try:
            persistently(self._client.delete_parameter, Name=f"{self._folder}/{guard_id}")
        except self._client.exceptions.ParameterNotFound:
            return

    def _content(self, guard_id: str) -> dict[str, Any]:
        try:
            found = persistently(self._client.get_parameter, Name=f"{self._folder}/{guard_id}")
        except self._client.exceptions.ParameterNotFound:
            return {}
        content: dict[str, Any] = json.loads(found["Parameter"]["Value"])
        return content


# Target and policy.


def _target(event: Event, physical_id: str) -> Answer:
    properties, scaling = event["ResourceProperties"], Scaling()
    resource_id = properties["ResourceId"]
    if event["RequestType"] == "Delete":
        if not physical_id.endswith(f"-{_FAILED}") and not _is_taken_over(event, physical_id):
            scaling.deregister(physical_id.partition("|")[0])
        return physical_id, {}
    if event["RequestType"] == "Create" and scaling.target(resource_id) is not None:
        raise ScalingError(
            f"{resource_id} is registered for scaling by something else, which would deregister it when it "
            "goes; deploy once without the scaling of this variant, then with it"
        )
    members = ("MinCapacity", "MaxCapacity", "SuspendedState")
    scaling.register(resource_id, {name: properties[name] for name in members if name in properties})
    scaling.set_actions(resource_id, properties.get("ScheduledActions") or [])
    joined = "|".join((resource_id, DIMENSION, NAMESPACE))
    return joined, {"Id": joined}


def _is_taken_over(event: Event, physical_id: str) -> bool:
    """Whether the stack has a target of CloudFormation's own in place of this one: the guard was left out."""
    native = ("AWS::ApplicationAutoScaling::ScalableTarget", physical_id)
    resources = _stack_resources(event["StackId"])
    return native in [(each["ResourceType"], each.get("PhysicalResourceId")) for each in resources]


def _policy(event: Event, physical_id: str) -> Answer:
    scaling = Scaling()
    if event["RequestType"] == "Delete":
        if not physical_id.endswith(f"-{_FAILED}"):
            resource_id, *_, name = physical_id.split("|")
            scaling.delete_policy(resource_id, name)
        return physical_id, {}
    properties = event["ResourceProperties"]
    target_id, name = properties["ScalingTargetId"], properties["PolicyName"]
    members = ("PolicyName", "PolicyType", "TargetTrackingScalingPolicyConfiguration")
    arn = scaling.put_policy(target_id.partition("|")[0], {each: properties[each] for each in members})
    return f"{target_id}|{name}", {"Arn": arn}


_SERVED: dict[str, Callable[[Event, str], Answer]] = {
    "Custom::TritonScalingGuard": _guard,
    "Custom::TritonScalableTarget": _target,
    "Custom::TritonScalingPolicy": _policy,
}


# Answering.


def _reason(error: Exception, context: Any) -> str:
    text = str(error) if isinstance(error, ScalingError) else f"{type(error).__name__}: {error}"
    text = text.encode("ascii", "replace").decode()
    return f"{text[:REASON_CHARACTERS]} (log stream {getattr(context, 'log_stream_name', 'unknown')})"


def _respond(
    event: Event,
    status: str,
    physical_id: str,
    *,
    reason: str = "",
    data: Mapping[str, Any] | None = None,
) -> None:
    answer = {
        "Status": status,
        "Reason": reason,
        "PhysicalResourceId": physical_id,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": data or {},
    }
    body = json.dumps(answer).encode()
    for attempt in range(RESPONSE_ATTEMPTS):
        try:
            _put(event["ResponseURL"], body)
            return
        except OSError:
            LOGGER.exception("answer %d of %d did not arrive", attempt + 1, RESPONSE_ATTEMPTS)
            time.sleep(attempt)
    raise ScalingError("CloudFormation could not be answered")


def _put(url: str, body: bytes) -> None:
    # The pre-signed URL is signed for an empty content type.
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})
    with urllib.request.urlopen(request, timeout=10) as response:
        response.read()
