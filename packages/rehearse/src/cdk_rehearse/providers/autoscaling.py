"""Application Auto Scaling: scalable target and scaling policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import NotSimulatedError, StackError
from ..existing import expect_created
from ..values.stand_ins import is_opaque
from .provider import Deployed, Physical, Provider, PutProvider, Request, tags_as_map, without

_SERVICE = "application-autoscaling"
_KEY = ("ResourceId", "ScalableDimension", "ServiceNamespace")


class ScalableTarget(Provider):
    type = "AWS::ApplicationAutoScaling::ScalableTarget"

    def create(self, request: Request) -> Physical:
        return self._put(request.properties, scheduled_before=())

    def update(self, current: Deployed, request: Request) -> Physical:
        return self._put(request.properties, scheduled_before=_scheduled(current.properties))

    def delete(self, current: Deployed) -> None:
        key = {name: current.properties[name] for name in _KEY}
        self.api.call(_SERVICE, "DeregisterScalableTarget", **key)

    def _put(self, properties: Mapping[str, Any], scheduled_before: Iterable[str]) -> Physical:
        """Register a target, and set its scheduled actions to those of the template."""
        _expect_simulated(properties)
        self._expect_resource(properties)
        if int(properties["MinCapacity"]) > int(properties["MaxCapacity"]):
            raise StackError("Maximum capacity cannot be less than minimum capacity")

        wanted = without(properties, "ScheduledActions", "Tags")
        if "Tags" in properties:
            wanted["Tags"] = tags_as_map(properties["Tags"])
        self.api.call(_SERVICE, "RegisterScalableTarget", **wanted)

        key = {name: properties[name] for name in _KEY}
        for action in properties.get("ScheduledActions", []):
            self.api.call(_SERVICE, "PutScheduledAction", **key, **action)
        for name in sorted({*scheduled_before} - _scheduled(properties)):
            self.api.call(_SERVICE, "DeleteScheduledAction", **key, ScheduledActionName=name)

        joined = "|".join(properties[name] for name in _KEY)
        return Physical(joined, {"Id": joined})

    def _expect_resource(self, properties: Mapping[str, Any]) -> None:
        """Check that the variant or component exists, as the service does."""
        match properties["ResourceId"].split("/"):
            case ["endpoint", endpoint, "variant", variant]:
                expect_created(self.api, "CreateEndpoint", EndpointName=endpoint)
                found = self.api.call("sagemaker", "DescribeEndpoint", EndpointName=endpoint)
                names = [known["VariantName"] for known in found["ProductionVariants"]]
                if variant not in names:
                    raise StackError(f"Variant {variant} of endpoint {endpoint} does not exist")
            case ["inference-component", component]:
                name = {"InferenceComponentName": component}
                expect_created(self.api, "CreateInferenceComponent", **name)
                self.api.call("sagemaker", "DescribeInferenceComponent", **name)


class ScalingPolicy(PutProvider):
    type = "AWS::ApplicationAutoScaling::ScalingPolicy"

    def delete(self, current: Deployed) -> None:
        name = current.properties["PolicyName"]
        key = _target_key(current.properties)
        self.api.call(_SERVICE, "DeleteScalingPolicy", PolicyName=name, **key)

    def put(self, request: Request, name: str) -> Physical:  # noqa: ARG002 - it has an ARN
        """Create or change the policy of a registered target."""
        properties = request.properties
        _expect_simulated(properties)
        key = _target_key(properties)
        self._expect_target(key)
        wanted = {**without(properties, "ScalingTargetId"), **key}
        arn = self.api.call(_SERVICE, "PutScalingPolicy", **wanted)["PolicyARN"]
        return Physical(arn, {"Arn": arn})

    def _expect_target(self, key: Mapping[str, str]) -> None:
        """Check that the scalable target exists, as the service does."""
        resource_id = key["ResourceId"]
        query = {**without(key, "ResourceId"), "ResourceIds": [resource_id]}
        if not self.api.call(_SERVICE, "DescribeScalableTargets", **query)["ScalableTargets"]:
            expect_created(self.api, "RegisterScalableTarget", ResourceId=resource_id)
            raise StackError(f"No scalable target registered for {key}")


def _scheduled(properties: Mapping[str, Any]) -> set[str]:
    """The names of the scheduled actions of a scalable target."""
    return {action["ScheduledActionName"] for action in properties.get("ScheduledActions", [])}


def _target_key(properties: Mapping[str, Any]) -> dict[str, str]:
    if "ScalingTargetId" in properties:
        return dict(zip(_KEY, properties["ScalingTargetId"].split("|"), strict=True))
    return {name: properties[name] for name in _KEY}


def _expect_simulated(properties: Mapping[str, Any]) -> None:
    """Raise ``NotSimulatedError`` unless the target is an endpoint or an inference component."""
    target = properties.get("ScalingTargetId", "")
    service = properties.get("ServiceNamespace", target.rpartition("|")[2])
    if is_opaque(target) or service != "sagemaker":
        raise NotSimulatedError(f"scaling of {service} is not simulated")
