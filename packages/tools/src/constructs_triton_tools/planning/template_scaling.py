"""Reads the scaling of a variant from a synthesized CloudFormation template,
so that it can be simulated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from constructs_triton_core.cloud_assembly.assembly import template_stacks
from constructs_triton_core.cloud_assembly.endpoints import (
    DeclaredTarget,
    declared_endpoints,
    endpoint_names,
    scalable_targets,
)
from constructs_triton_core.cloud_assembly.intrinsics import number_of
from constructs_triton_core.cloud_assembly.scaling import (
    DeclaredPolicy,
    limit_of_quotient,
    scaling_policies,
)
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.spelling import quoted
from constructs_triton_tools.planning.scaling import (
    Scaling,
    ScheduledAction,
    StepScaling,
    TargetTracking,
)

__all__ = ["read_scaling", "scaling_of_resources"]

# Predefined metrics and the names under which CloudWatch has them.
_PREDEFINED = {
    "SageMakerVariantInvocationsPerInstance": "InvocationsPerInstance",
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": "ConcurrentRequestsPerModel",
}
# Namespace and name of the metric of a policy of scale_out_on_queue_time, in one of its queries.
_QUEUE_TIME = ("Triton", "QueueTime")
Policy = TypeVar("Policy", TargetTracking, StepScaling)


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
        endpoint: Name of the endpoint, or the start of its logical id. Required if several
            endpoints scale.
        variant: Name of the variant. Required if several variants scale.
        instance_type: Instance type of the variant, for policies on utilization. Default: that of
            the template.

    Raises:
        InvalidValueError: the template cannot be read, not exactly one variant matches, or a policy
            cannot be simulated.
    """
    stacks = template_stacks(Path(path), str(path))
    stack, target = _find_target(stacks, endpoint, variant)
    return _scaling(stack, target, InstanceType.of(instance_type) if instance_type else None)


def scaling_of_resources(
    resources: Mapping[str, Mapping[str, Any]],
    target_id: str,
    *,
    instance_type: InstanceType | None = None,
) -> Scaling:
    """Return the scaling of one ``ScalableTarget`` of a template's resources.

    ``instance_type`` is needed for policies on utilization. Default: that of the endpoint
    configuration.

    Raises:
        InvalidValueError: a value is known only at deployment, or a policy cannot be simulated.
    """
    stack = SynthesizedStack(target_id, Template({"Resources": resources}))
    (target,) = (scaled for scaled in scalable_targets(stack) if scaled.logical_id == target_id)
    return _scaling(stack, target, instance_type)


def _scaling(
    stack: SynthesizedStack, target: DeclaredTarget, instance_type: InstanceType | None
) -> Scaling:
    instance_type = instance_type or _instance_type(stack, target)
    return Scaling(
        min_capacity=int(
            _number(target.logical_id, "MinCapacity", target.properties.get("MinCapacity"))
        ),
        max_capacity=int(
            _number(target.logical_id, "MaxCapacity", target.properties.get("MaxCapacity"))
        ),
        policies=tuple(
            _read_policy(policy, instance_type)
            for policy in scaling_policies(stack)
            if policy.target.logical_id == target.logical_id
        ),
        schedules=tuple(
            _read_schedule(target.logical_id, action)
            for action in target.properties.get("ScheduledActions", ())
        ),
    )


# --- finding the variant --------------------------------------------------------------------------


def _find_target(
    stacks: Sequence[SynthesizedStack], endpoint: str | None, variant: str | None
) -> tuple[SynthesizedStack, DeclaredTarget]:
    """Return the only target that matches, and its stack: the first or one that is nested in it."""
    targets: list[tuple[SynthesizedStack, DeclaredTarget]] = []
    for stack in stacks:
        targets += ((stack, target) for target in scalable_targets(stack))
    matching = [
        (stack, target)
        for stack, target in targets
        if _is_of(endpoint, stack, target) and variant in (None, target.scaled_name)
    ]
    if len(matching) == 1:
        return matching[0]
    name = stacks[0].name
    if not targets:
        raise InvalidValueError(
            f"{name}: has no scaled variant; call auto_scale_instance_count on the endpoint"
        )
    shown = quoted(f"{_endpoint_of(target)}/{target.scaled_name}" for _, target in targets)
    raise InvalidValueError(
        f"{name}: must have one scaled variant that matches, got {len(matching)} of {shown}; "
        "set --endpoint and --variant to one of them"
    )


def _is_of(endpoint: str | None, stack: SynthesizedStack, target: DeclaredTarget) -> bool:
    if endpoint is None:
        return True
    return any(_matches(endpoint, name) for name in _endpoint_names(stack, target))


def _matches(wanted: str, name: str) -> bool:
    return wanted == name or (not name.islower() and name.startswith(wanted))


def _endpoint_of(target: DeclaredTarget) -> str:
    """Return the name in a resource ID such as ``endpoint/digits/variant/AllTraffic``."""
    return [*target.resource_id.split("/"), ""][1]


def _endpoint_names(stack: SynthesizedStack, target: DeclaredTarget) -> list[str]:
    """Return the name of a target's endpoint, and its logical ID if the stack has it."""
    name = _endpoint_of(target)
    return [
        name,
        *(
            logical_id
            for logical_id, endpoint_name in endpoint_names(stack).items()
            if endpoint_name == name
        ),
    ]


def _instance_type(stack: SynthesizedStack, target: DeclaredTarget) -> InstanceType | None:
    """Return the instance type of the variant, where the template has it:
    needed for utilization.
    """
    for endpoint in declared_endpoints(stack, _endpoint_of(target), is_complete=False):
        for variant in endpoint.variants:
            if variant.name == target.scaled_name and isinstance(variant.instance_type, str):
                return InstanceType.of(variant.instance_type)
    return None


# --- policies -------------------------------------------------------------------------------------


def _read_policy(
    policy: DeclaredPolicy, instance_type: InstanceType | None
) -> TargetTracking | StepScaling:
    if policy.tracking is not None:
        return _read_tracking(policy.logical_id, policy.tracking, instance_type)
    if not policy.alarms:
        raise InvalidValueError(
            f"{policy.logical_id}: no alarm triggers this policy; "
            "add an alarm, or remove the policy"
        )
    steps = policy.properties.get("StepScalingPolicyConfiguration")
    if steps is None:
        raise InvalidValueError(
            f"{policy.logical_id}: has neither a target to track nor steps; "
            "give the policy as options"
        )
    return _read_steps(policy.logical_id, steps, policy.alarms[0], instance_type)


def _read_tracking(
    id: str, config: Mapping[str, Any], instance_type: InstanceType | None
) -> TargetTracking:
    metric = _tracked_metric(config)
    cooldowns = {
        f"scale_{way}_cooldown_seconds": _number(
            id, "cooldown", config[f"Scale{way.title()}Cooldown"]
        )
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
        highest_value=_highest_value(config),
        **cooldowns,
    )


def _tracked_metric(config: Mapping[str, Any]) -> str:
    predefined = (config.get("PredefinedMetricSpecification") or {}).get("PredefinedMetricType")
    if predefined is not None:
        return _PREDEFINED.get(str(predefined), str(predefined))
    specification = config.get("CustomizedMetricSpecification") or {}
    if _QUEUE_TIME in [_name_of(query) for query in specification.get("Metrics", ())]:
        return _QUEUE_TIME[1]
    return str(specification.get("MetricName", "metric math"))


def _name_of(query: Mapping[str, Any]) -> tuple[object, object]:
    metric = (query.get("MetricStat") or {}).get("Metric") or {}
    return metric.get("Namespace"), metric.get("MetricName")


def _highest_value(config: Mapping[str, Any]) -> int | None:
    """Return the limit in a policy of ``scale_out_on_queue_time``."""
    queries = (config.get("CustomizedMetricSpecification") or {}).get("Metrics", ())
    found = (limit_of_quotient(str(query.get("Expression", ""))) for query in queries)
    return next((limit for limit in found if limit is not None), None)


def _read_steps(
    id: str, config: Mapping[str, Any], alarm: Mapping[str, Any], instance_type: InstanceType | None
) -> StepScaling:
    metric = str(alarm.get("MetricName", "metric math"))
    steps = tuple(
        (
            _optional_number(id, "MetricIntervalLowerBound", step),
            _optional_number(id, "MetricIntervalUpperBound", step),
            _number(id, "ScalingAdjustment", step["ScalingAdjustment"]),
        )
        for step in config["StepAdjustments"]
    )
    cooldown = {}
    if "Cooldown" in config:
        cooldown["cooldown_seconds"] = _number(id, "Cooldown", config["Cooldown"])
    return _build(
        id,
        StepScaling,
        threshold=_number(id, "Threshold", alarm.get("Threshold")),
        steps=steps,
        above=str(alarm.get("ComparisonOperator")).startswith("Greater"),
        metric=metric,
        adjustment_type=config.get("AdjustmentType", "ChangeInCapacity"),
        period_minutes=max(1, int(_number(id, "Period", alarm.get("Period", 60))) // 60),
        evaluation_periods=int(_number(id, "EvaluationPeriods", alarm.get("EvaluationPeriods"))),
        is_sum=alarm.get("Statistic") == "Sum",
        minimum_adjustment=int(
            _number(id, "MinAdjustmentMagnitude", config.get("MinAdjustmentMagnitude", 1))
        ),
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
            f"{id}: {metric} needs an instance type with a known number of "
            f"{'GPUs' if gpu else 'vCPUs'}, "
            f"got {instance_type or 'none in the template'}; set --instance-type"
        )
    return units


def _read_schedule(id: str, action: Mapping[str, Any]) -> ScheduledAction:
    bounds = action.get("ScalableTargetAction") or {}
    return ScheduledAction(
        schedule=action["Schedule"],
        min_capacity=_capacity(id, "MinCapacity", bounds),
        max_capacity=_capacity(id, "MaxCapacity", bounds),
        time_zone=action.get("Timezone", "UTC"),
    )


def _capacity(id: str, name: str, bounds: Mapping[str, Any]) -> int | None:
    return None if bounds.get(name) is None else int(_number(id, name, bounds[name]))


def _optional_number(id: str, name: str, values: Mapping[str, Any]) -> float | None:
    return None if values.get(name) is None else _number(id, name, values[name])


def _number(id: str, name: str, declared: Any) -> float:
    value = number_of(declared)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValueError(
            f"{id}.{name}: must be a number to be simulated, got {json.dumps(value)}, which is "
            "known only at deployment; set a number, or give the policy as options"
        )
    return value
