"""The scaling of variants and components as statements."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_tools.operations.adopting.python_text import (
    Answer,
    Call,
    Items,
    Options,
    call,
    literal,
    options_of,
    quoted,
)
from constructs_triton_tools.operations.adopting.running_endpoint import RunningEndpoint
from constructs_triton_tools.operations.adopting.stack.stack_code import StackCode

_PREDEFINED = {
    "SageMakerVariantInvocationsPerInstance": "scale_on_invocations_per_instance",
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": "scale_on_concurrent_requests",
    "SageMakerInferenceComponentInvocationsPerCopy": "scale_on_invocations_per_copy",
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": (
        "scale_on_concurrent_requests_per_copy"
    ),
}
_UTILIZATIONS = {
    "GPUUtilization": ("scale_on_gpu_utilization", "gpus"),
    "GPUMemoryUtilization": ("scale_on_gpu_memory_utilization", "gpus"),
    "CPUUtilization": ("scale_on_cpu_utilization", "vcpus"),
}
_BACKLOG = "ApproximateBacklogSizePerInstance"
#: Seconds between two activities, unless a policy says otherwise. The construct has others for
#: GPUs.
_COOLDOWNS = {"ScaleInCooldown": 300, "ScaleOutCooldown": 300}


def _target_of(running: RunningEndpoint, resource_id: str) -> Answer | None:
    for target in running.targets:
        if target["ResourceId"] == resource_id:
            return target
    return None


def add_scaling(code: StackCode, scaled: str, resource_id: str, instance_type: str | None) -> None:
    """Add the scaling of a variant, or of a component, which has no ``instance_type``,
    if it scales.
    """
    target = _target_of(code.running, resource_id)
    if target is None:
        return

    if any((target.get("SuspendedState") or {}).values()):
        code.adoption.refuse(
            "suspended-state",
            f"{resource_id}: its scaling is suspended, which is not carried over; suspend it again",
        )
    statements: list[Call] = []
    for policy in code.running.policies:
        if policy["ResourceId"] == resource_id:
            statements += _policy(code, policy, target, instance_type)
    for action in code.running.actions:
        if action["ResourceId"] == resource_id:
            statements += _action(code, action)

    method = "auto_scale_copy_count" if instance_type is None else "auto_scale_instance_count"
    bounds = options_of(target, "MinCapacity", "MaxCapacity", with_zero=True)
    if not statements:
        code.run(f"{scaled}.{method}", **bounds)
        return

    variable = code.add("scaling", call(f"{scaled}.{method}", **bounds))
    for statement in statements:
        code.run(f"{variable}.{statement.function}", *statement.positional, **statement.keywords)


def _policy(
    code: StackCode, policy: Answer, target: Answer, instance_type: str | None
) -> Iterator[Call]:
    name = policy["PolicyName"]
    resource_id = policy["ResourceId"]
    config = policy.get("TargetTrackingScalingPolicyConfiguration")
    if config is None and policy["PolicyType"] == "StepScaling" and target["MinCapacity"] == 0:
        code.adoption.differ(
            f"DescribeScalingPolicies[{name}]",
            "a policy of the construct that starts the first instance or copy; delete the old "
            "policy and its alarm after the switch",
        )
        return
    if config is None:
        code.adoption.refuse(
            "step-scaling-policy",
            f"{resource_id}: policy {name} ({policy['PolicyType']}) is not carried over; add it by "
            "hand with scale_on_metric",
        )
        return
    found = _tracking(code, policy, instance_type)
    if found is None:
        code.adoption.refuse(
            "metric-math-policy",
            f"{resource_id}: policy {name} follows a metric that is not one metric of CloudWatch, "
            "so it is not carried over; add it by hand with scale_to_track_metric",
        )
        return
    method, options = found
    times = {**(_COOLDOWNS if method.startswith("scale_on_gpu") else {}), **config}
    yield call(
        method,
        code.new_id(name),
        **options,
        policy_name=literal(name),
        **options_of(times, *_COOLDOWNS, with_zero=True),
        **options_of(config, "DisableScaleIn"),
    )


def _tracking(
    code: StackCode, policy: Answer, instance_type: str | None
) -> tuple[str, Options] | None:
    """Return the method of the construct for a policy, and its options."""
    config = policy["TargetTrackingScalingPolicyConfiguration"]
    resource_id = policy["ResourceId"]
    value = config["TargetValue"]
    predefined = config.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    if predefined in _PREDEFINED:
        is_rate = "Invocations" in predefined
        keyword = "target_invocations_per_minute" if is_rate else "target_concurrent_requests"
        return _PREDEFINED[predefined], {keyword: literal(value)}
    metric = config.get("CustomizedMetricSpecification", {})
    if "MetricName" not in metric:
        return None
    if instance_type is not None and _is_own(metric, resource_id):
        name = metric["MetricName"]
        if name == _BACKLOG:
            return "scale_on_backlog", {"target_backlog_per_instance": literal(value)}
        percent = _percent(name, value, instance_type)
        if percent is not None:
            if not metric.get("Unit"):
                code.adoption.differ(
                    f"DescribeScalingPolicies[{policy['PolicyName']}].TargetTrackingScalingPolicyConfiguration.CustomizedMetricSpecification.Unit",
                    "Percent, the unit with which SageMaker publishes the metric",
                )
            return _UTILIZATIONS[name][0], {"target_utilization_percent": f"{percent:g}"}
    return "scale_to_track_metric", {
        "metric": _metric(code, metric),
        "target_value": literal(value),
    }


def _percent(name: str, value: float, instance_type: str) -> float | None:
    """Return a target for one GPU or vCPU; ``None`` if the construct would refuse it."""
    if name not in _UTILIZATIONS:
        return None
    units = getattr(InstanceType.of(instance_type), _UTILIZATIONS[name][1])
    percent = value / units if units else 0
    return percent if 1 <= percent <= 100 and float(f"{percent:g}") * units == value else None


def _is_own(metric: Answer, resource_id: str) -> bool:
    """Return whether SageMaker publishes the metric for this variant, as the construct reads it."""
    _, endpoint, _, variant = resource_id.split("/")
    dimensions = {
        dimension["Name"]: dimension["Value"] for dimension in metric.get("Dimensions", [])
    }
    if metric["Statistic"] != "Average":
        return False
    if metric["MetricName"] == _BACKLOG:
        return dimensions == {"EndpointName": endpoint}
    is_published = (
        metric["Namespace"] == "/aws/sagemaker/Endpoints"
        and metric.get("Unit", "Percent") == "Percent"
    )
    return is_published and dimensions == {"EndpointName": endpoint, "VariantName": variant}


def _metric(code: StackCode, metric: Answer) -> Call:
    dimensions: Options = {}
    for dimension in metric.get("Dimensions", []):
        is_name = dimension["Value"] == code.running.name
        dimensions[quoted(dimension["Name"])] = (
            "ENDPOINT_NAME" if is_name else literal(dimension["Value"])
        )
    unit = "_PER_".join(part.upper() for part in metric.get("Unit", "").split("/"))
    return call(
        "cloudwatch.Metric",
        **options_of(metric, "Namespace", "MetricName"),
        dimensions_map=Items(dimensions),
        **options_of(metric, "Statistic"),
        **({"unit": f"cloudwatch.Unit.{unit}"} if unit else {}),
    )


def _action(code: StackCode, action: Answer) -> Iterator[Call]:
    name = action["ScheduledActionName"]
    if action.get("StartTime") or action.get("EndTime"):
        code.adoption.refuse(
            "scheduled-action",
            f"{action['ResourceId']}: scheduled action {name} has a start or an end, so it is not "
            "carried over; add it by hand with scale_on_schedule",
        )
        return
    zone = action.get("Timezone")
    bounds = action.get("ScalableTargetAction") or {}
    yield call(
        "scale_on_schedule",
        literal(name),
        schedule=call("appscaling.Schedule.expression", literal(action["Schedule"])),
        **options_of(bounds, "MinCapacity", "MaxCapacity", with_zero=True),
        **({"time_zone": call("cdk.TimeZone.of", literal(zone))} if zone else {}),
    )
