"""The calls that CloudFormation makes for a template's resources, as boto3 would make them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::URLSuffix": "amazonaws.com",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a service's API."""

    service: str
    operation: str
    request: dict[str, Any]


def resolve(value: Any, names: Mapping[str, str]) -> Any:
    """Resolve intrinsic functions; ``names`` maps ``Ref`` and ``Fn::GetAtt`` of resources to
    strings.

    A key is ``<logical id>`` or ``<logical id>.<attribute>``. A resource without an entry becomes
    its logical id.
    """
    match value:
        case {"Ref": name}:
            resolved = names.get(name, _PSEUDO.get(name, name))
        case {"Fn::GetAtt": [name, attribute]}:
            resolved = names.get(f"{name}.{attribute}", name)
        case {"Fn::Join": [separator, parts]}:
            resolved = separator.join(str(resolve(part, names)) for part in parts)
        case {"Fn::Select": [1, {"Fn::Split": ["inference-component/", arn]}]}:
            resolved = str(resolve(arn, names)).rpartition("inference-component/")[2]
        case {"Fn::Select": [0, [first, *_]]}:
            resolved = resolve(first, names)
        case dict():
            resolved = {key: resolve(each, names) for key, each in value.items()}
        case list():
            resolved = [resolve(each, names) for each in value]
        case _:
            resolved = value
    return resolved


def calls_of(template: Mapping[str, Any], names: Mapping[str, str] | None = None) -> Iterator[Call]:
    """Return the scaling and CloudWatch calls of all resources of a template, in its order."""
    resources = template["Resources"]
    known = {**_target_ids(resources), **(names or {})}
    for logical_id, resource in resources.items():
        properties = resolve(resource.get("Properties", {}), known)
        yield from _calls(resource["Type"], logical_id, properties, resources, known)


def _calls(
    kind: str,
    logical_id: str,
    properties: dict[str, Any],
    resources: Mapping[str, Any],
    names: Mapping[str, str],
) -> Iterator[Call]:
    match kind:
        case "AWS::ApplicationAutoScaling::ScalableTarget":
            yield from _scalable_target(properties)
        case "AWS::ApplicationAutoScaling::ScalingPolicy":
            target = resources[properties.pop("ScalingTargetId")]["Properties"]
            request = {**properties, **_identity(resolve(target, names))}
            yield Call("application-autoscaling", "PutScalingPolicy", request)
        case "AWS::CloudWatch::Alarm":
            properties.setdefault("AlarmName", logical_id)
            yield Call("cloudwatch", "PutMetricAlarm", properties)
        case "AWS::CloudWatch::Dashboard":
            properties.setdefault("DashboardName", logical_id)
            yield Call("cloudwatch", "PutDashboard", properties)


def _scalable_target(properties: dict[str, Any]) -> Iterator[Call]:
    actions = properties.pop("ScheduledActions", [])
    yield Call("application-autoscaling", "RegisterScalableTarget", properties)
    for action in actions:
        request = {**action, **_identity(properties)}
        yield Call("application-autoscaling", "PutScheduledAction", request)


def _identity(target: Mapping[str, Any]) -> dict[str, Any]:
    return {name: target[name] for name in ("ServiceNamespace", "ResourceId", "ScalableDimension")}


def _target_ids(resources: Mapping[str, Any]) -> dict[str, str]:
    """Return the logical id of a scalable target, by which :func:`_calls` finds it."""
    kind = "AWS::ApplicationAutoScaling::ScalableTarget"
    return {name: name for name, each in resources.items() if each["Type"] == kind}
