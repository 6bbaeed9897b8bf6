"""Reads what scales a variant from a synthesized CloudFormation template."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, TypeVar

from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.planning.scaling import Scaling, ScheduledAction, StepScaling, TargetTracking
from constructs_triton.untrusted.json_files import read_json
from constructs_triton_client.spelling import quoted

__all__ = ["read_scaling", "scaling_of_resources"]

_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
# Predefined metrics and the names under which CloudWatch has them.
_PREDEFINED = {
    "SageMakerVariantInvocationsPerInstance": "InvocationsPerInstance",
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": "ConcurrentRequestsPerModel",
}
Policy = TypeVar("Policy", TargetTracking, StepScaling)
Resources = Mapping[str, Mapping[str, Any]]


def read_scaling(
    path: str | PathLike[str],
    endpoint: str | None = None,
    variant: str | None = None,
    *,
    instance_type: str | None = None,
) -> Scaling:
    """Read the scaling of a variant from a template that ``cdk synth`` wrote.

    Args:
        path: Path of the template.
        endpoint: Name of the endpoint, or the start of its logical id. Required if several endpoints scale.
        variant: Name of the variant. Required if several variants scale.
        instance_type: Instance type of the variant, for policies on utilization. Default: that of the
            template.

    Raises:
        InvalidValueError: the template cannot be read, not exactly one variant matches, or a policy cannot be
            simulated.
    """
    try:
        resources = read_json(path)["Resources"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidValueError(
            f"{path}: is not a synthesized template ({error}); "
            "give a file such as cdk.out/Stack.template.json"
        ) from None
    target_id = _find_target(path, resources, endpoint, variant)
    known = InstanceType.of(instance_type) if instance_type else None
    return scaling_of_resources(resources, target_id, instance_type=known)


def scaling_of_resources(
    resources: Resources, target_id: str, *, instance_type: InstanceType | None = None
) -> Scaling:
    """Return the scaling of one ``ScalableTarget`` of a template's resources.

    ``instance_type`` is needed for policies on utilization. Default: that of the endpoint configuration.

    Raises:
        InvalidValueError: a value is known only at deployment, or a policy cannot be simulated.
    """
    target = resources[target_id]["Properties"]
    instance_type = instance_type or _instance_type(resources, target)
    policies = (
        _read_policy(resources, policy_id, resource["Properties"], instance_type)
        for policy_id, resource in resources.items()
        if resource["Type"] == _POLICY and _reference(resource["Properties"]["ScalingTargetId"]) == target_id
    )
    return Scaling(
        min_capacity=int(_number(target_id, "MinCapacity", target["MinCapacity"])),
        max_capacity=int(_number(target_id, "MaxCapacity", target["MaxCapacity"])),
        policies=tuple(policies),
        schedules=tuple(map(_read_schedule, target.get("ScheduledActions", ()))),
    )


# --- finding the variant ----------------------------------------------------------------------------------


def _find_target(
    path: str | PathLike[str], resources: Resources, endpoint: str | None, variant: str | None
) -> str:
    targets = (logical_id for logical_id, resource in resources.items() if resource["Type"] == _TARGET)
    found = {target_id: _names(resources, resources[target_id]) for target_id in targets}
    matching = [
        target_id
        for target_id, (names, variant_name) in found.items()
        if (endpoint is None or any(_matches(endpoint, name) for name in names))
        and variant in (None, variant_name)
    ]
    if len(matching) == 1:
        return matching[0]
    shown = quoted("/".join([names[0], variant_name]) for names, variant_name in found.values())
    if not found:
        raise InvalidValueError(
            f"{path}: has no scaled variant; call auto_scale_instance_count on the endpoint"
        )
    raise InvalidValueError(
        f"{path}: must have one scaled variant that matches, got {len(matching)} of {shown}; "
        "set --endpoint and --variant to one of them"
    )


def _matches(wanted: str, name: str) -> bool:
    return wanted == name or (not name.islower() and name.startswith(wanted))


def _names(resources: Resources, target: Mapping[str, Any]) -> tuple[list[str], str]:
    """The names of a target's endpoint (logical id, endpoint name), and that of its variant."""
    parts = _join(target["Properties"]["ResourceId"]).split("/")
    endpoint, variant = parts[1], parts[-1]
    properties = resources.get(endpoint, {}).get("Properties", {})
    name = properties.get("EndpointName")
    return [*([name] if isinstance(name, str) else []), endpoint], variant


def _join(value: Any) -> str:
    """A resource id as one string, with logical ids in place of references."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(map(_join, parts))
    return _reference(value)


def _reference(value: Any) -> str:
    if isinstance(value, str):
        return value
    target = value.get("Ref") or value.get("Fn::GetAtt", ["unknown"])[0]
    return str(target)


def _instance_type(resources: Resources, target: Mapping[str, Any]) -> InstanceType | None:
    """The instance type of the variant, where the template has it: needed for utilization."""
    parts = _join(target["ResourceId"]).split("/")
    for variant in _variants(resources, parts[1]):
        name = variant.get("InstanceType")
        if variant.get("VariantName") == parts[-1] and isinstance(name, str):
            return InstanceType.of(name)
    return None


def _variants(resources: Resources, endpoint: str) -> Iterator[Mapping[str, Any]]:
    for logical_id, resource in resources.items():
        properties = resource.get("Properties", {})
        is_endpoint = resource["Type"] == "AWS::SageMaker::Endpoint"
        if is_endpoint and endpoint in (logical_id, properties.get("EndpointName")):
            config = resources.get(_reference(properties.get("EndpointConfigName", "")), {})
            yield from config.get("Properties", {}).get("ProductionVariants", ())


# --- policies ---------------------------------------------------------------------------------------------


def _read_policy(
    resources: Resources, id: str, policy: Mapping[str, Any], instance_type: InstanceType | None
) -> TargetTracking | StepScaling:
    if "TargetTrackingScalingPolicyConfiguration" in policy:
        return _read_tracking(id, policy["TargetTrackingScalingPolicyConfiguration"], instance_type)
    return _read_steps(id, policy["StepScalingPolicyConfiguration"], _alarm_of(resources, id), instance_type)


def _read_tracking(id: str, config: Mapping[str, Any], instance_type: InstanceType | None) -> TargetTracking:
    metric = _tracked_metric(config)
    cooldowns = {
        f"scale_{way}_cooldown_seconds": config[f"Scale{way.title()}Cooldown"]
        for way in ("out", "in")
        if f"Scale{way.title()}Cooldown" in config
    }
    return _build(
        id,
        TargetTracking,
        target=_number(id, "TargetValue", config["TargetValue"]),
        metric=metric,
        disable_scale_in=bool(config.get("DisableScaleIn", False)),
        units=_units(id, metric, instance_type),
        **cooldowns,
    )


def _tracked_metric(config: Mapping[str, Any]) -> str:
    predefined = config.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    if predefined is not None:
        return _PREDEFINED.get(predefined, str(predefined))
    return str(config.get("CustomizedMetricSpecification", {}).get("MetricName", "metric math"))


def _alarm_of(resources: Resources, policy_id: str) -> Mapping[str, Any]:
    for resource in resources.values():
        properties: Mapping[str, Any] = resource.get("Properties", {})
        if resource["Type"] == "AWS::CloudWatch::Alarm" and policy_id in map(
            _reference, properties.get("AlarmActions", ())
        ):
            return properties
    raise InvalidValueError(f"{policy_id}: no alarm triggers this policy; add an alarm, or remove the policy")


def _read_steps(
    id: str, config: Mapping[str, Any], alarm: Mapping[str, Any], instance_type: InstanceType | None
) -> StepScaling:
    metric = str(alarm.get("MetricName", "metric math"))
    steps = tuple(
        (
            step.get("MetricIntervalLowerBound"),
            step.get("MetricIntervalUpperBound"),
            step["ScalingAdjustment"],
        )
        for step in config["StepAdjustments"]
    )
    cooldown = {"cooldown_seconds": config["Cooldown"]} if "Cooldown" in config else {}
    return _build(
        id,
        StepScaling,
        threshold=_number(id, "Threshold", alarm["Threshold"]),
        steps=steps,
        above=str(alarm["ComparisonOperator"]).startswith("Greater"),
        metric=metric,
        adjustment_type=config.get("AdjustmentType", "ChangeInCapacity"),
        period_minutes=max(1, int(alarm.get("Period", 60)) // 60),
        evaluation_periods=int(alarm["EvaluationPeriods"]),
        is_sum=alarm.get("Statistic") == "Sum",
        minimum_adjustment=int(config.get("MinAdjustmentMagnitude", 1)),
        units=_units(id, metric, instance_type),
        **cooldown,
    )


def _build(id: str, policy_type: type[Policy], **values: Any) -> Policy:
    try:
        return policy_type(**values)
    except InvalidValueError as error:
        raise InvalidValueError(f"{id}: {error}") from None


def _units(id: str, metric: str, instance_type: InstanceType | None) -> float:
    """The GPUs or vCPUs of one instance, of which each has 100 percent."""
    if metric not in ("GPUUtilization", "CPUUtilization"):
        return 1
    gpu = metric == "GPUUtilization"
    units = instance_type and (instance_type.gpus if gpu else instance_type.vcpus)
    if not units:
        raise InvalidValueError(
            f"{id}: {metric} needs an instance type with a known number of {'GPUs' if gpu else 'vCPUs'}, "
            f"got {instance_type or 'none in the template'}; set --instance-type"
        )
    return units


def _read_schedule(action: Mapping[str, Any]) -> ScheduledAction:
    bounds = action.get("ScalableTargetAction", {})
    return ScheduledAction(
        schedule=action["Schedule"],
        min_capacity=bounds.get("MinCapacity"),
        max_capacity=bounds.get("MaxCapacity"),
        time_zone=action.get("Timezone", "UTC"),
    )


def _number(id: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValueError(
            f"{id}.{name}: must be a number to be simulated, got {json.dumps(value)}, which is known only at "
            "deployment; set a number, or give the policy as options"
        )
    return value
