"""The scaling of variants and components as statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.operations.adopting.python_text import Call, Expression, Items, literal, quoted
from constructs_triton.operations.adopting.stack_code import StackCode
from constructs_triton.operations.adopting.variant_code import duration

__all__ = ["add_scaling"]

Answer = Mapping[str, Any]
Options = dict[str, Expression]

_PREDEFINED = {
    "SageMakerVariantInvocationsPerInstance": (
        "scale_on_invocations_per_instance",
        "target_invocations_per_minute",
    ),
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        "scale_on_concurrent_requests",
        "target_concurrent_requests",
    ),
    "SageMakerInferenceComponentInvocationsPerCopy": (
        "scale_on_invocations_per_copy",
        "target_invocations_per_minute",
    ),
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": (
        "scale_on_concurrent_requests_per_copy",
        "target_concurrent_requests",
    ),
}
_UTILIZATIONS = {
    "GPUUtilization": ("scale_on_gpu_utilization", "gpus"),
    "GPUMemoryUtilization": ("scale_on_gpu_memory_utilization", "gpus"),
    "CPUUtilization": ("scale_on_cpu_utilization", "vcpus"),
}
_BACKLOG = "ApproximateBacklogSizePerInstance"
#: Seconds between two activities, unless a policy says otherwise.
_COOLDOWN = 300
_GPU_COOLDOWNS = {"ScaleInCooldown": 600, "ScaleOutCooldown": 200}


def add_scaling(code: StackCode, scaled: str, resource_id: str, *, instance_type: str | None) -> None:
    """Add the scaling of a variant or a component; nothing if it does not scale.

    Args:
        code: The stack.
        scaled: Variable of the endpoint, of the variant or of the component.
        resource_id: Its name in Application Auto Scaling.
        instance_type: Type of its instances; ``None`` for a component.
    """
    target = next((each for each in code.running.targets if each["ResourceId"] == resource_id), None)
    if target is None:
        return
    method = "auto_scale_copy_count" if instance_type is None else "auto_scale_instance_count"
    bounds = {"min_capacity": str(target["MinCapacity"]), "max_capacity": str(target["MaxCapacity"])}
    if any((target.get("SuspendedState") or {}).values()):
        code.adoption.refuse(
            "suspended-state",
            f"{resource_id}: its scaling is suspended, which is not carried over; suspend it again",
        )
    policies = [each for each in code.running.policies if each["ResourceId"] == resource_id]
    actions = [each for each in code.running.actions if each["ResourceId"] == resource_id]
    statements = [
        *(each for policy in policies for each in _policy(code, policy, target, instance_type)),
        *(each for action in actions for each in _action(code, action)),
    ]
    call = Call(f"{scaled}.{method}", [], bounds)
    if not statements:
        code.run(call)
        return
    variable = code.add("scaling", call)
    for each in statements:
        code.run(Call(f"{variable}.{each.function}", each.positional, each.keywords))


def _policy(code: StackCode, policy: Answer, target: Answer, instance_type: str | None) -> Iterator[Call]:
    name, resource_id = policy["PolicyName"], policy["ResourceId"]
    config = policy.get("TargetTrackingScalingPolicyConfiguration")
    if config is None:
        if policy["PolicyType"] == "StepScaling" and target["MinCapacity"] == 0:
            code.adoption.differ(
                f"DescribeScalingPolicies[{name}]",
                "a policy of the construct that starts the first instance or copy; delete the old policy and "
                "its alarm after the switch",
            )
            return
        code.adoption.refuse(
            "step-scaling-policy",
            f"{resource_id}: policy {name} ({policy['PolicyType']}) is not carried over; add it by hand with "
            "scale_on_metric",
        )
        return
    found = _tracking(code, policy, instance_type)
    if found is None:
        code.adoption.refuse(
            "metric-math-policy",
            f"{resource_id}: policy {name} follows a metric that is not one metric of CloudWatch, so it is "
            "not carried over; add it by hand with scale_to_track_metric",
        )
        return
    method, options = found
    defaults = _GPU_COOLDOWNS if method.startswith("scale_on_gpu") else {}
    yield Call(
        method, [code.new_id(name)], {**options, "policy_name": literal(name), **_cooldowns(config, defaults)}
    )


def _cooldowns(config: Answer, defaults: Mapping[str, int]) -> Options:
    found: Options = {}
    for keyword, member in (
        ("scale_in_cooldown", "ScaleInCooldown"),
        ("scale_out_cooldown", "ScaleOutCooldown"),
    ):
        seconds = config.get(member, _COOLDOWN if defaults else None)
        if seconds is not None and seconds != defaults.get(member):
            found[keyword] = duration(seconds)
    if config.get("DisableScaleIn"):
        found["disable_scale_in"] = "True"
    return found


def _tracking(code: StackCode, policy: Answer, instance_type: str | None) -> tuple[str, Options] | None:
    """Return the method of the construct for a policy, and its options."""
    config, resource_id = policy["TargetTrackingScalingPolicyConfiguration"], policy["ResourceId"]
    value = config["TargetValue"]
    predefined = config.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    if predefined in _PREDEFINED:
        method, keyword = _PREDEFINED[predefined]
        return method, {keyword: f"{value:g}"}
    metric = config.get("CustomizedMetricSpecification", {})
    if "MetricName" not in metric:
        return None
    if instance_type is not None and _is_own(metric, resource_id):
        name = metric["MetricName"]
        if name == _BACKLOG:
            return "scale_on_backlog", {"target_backlog_per_instance": f"{value:g}"}
        percent = _percent(name, value, instance_type)
        if percent is not None:
            if not metric.get("Unit"):
                code.adoption.differ(
                    f"DescribeScalingPolicies[{policy['PolicyName']}].TargetTrackingScalingPolicyConfiguration"
                    ".CustomizedMetricSpecification.Unit",
                    "Percent, the unit with which SageMaker publishes the metric",
                )
            return _UTILIZATIONS[name][0], _target(percent)
    return "scale_to_track_metric", {"metric": _metric(code, metric), "target_value": f"{value:g}"}


def _target(percent: float) -> Options:
    # 60 percent is the default of the construct.
    return {} if percent == 60 else {"target_utilization_percent": f"{percent:g}"}


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
    wanted = {"EndpointName": endpoint, "VariantName": variant}
    dimensions = {each["Name"]: each["Value"] for each in metric.get("Dimensions", [])}
    if metric["MetricName"] == _BACKLOG:
        return dimensions == {"EndpointName": endpoint} and metric["Statistic"] == "Average"
    is_published = (
        metric["Namespace"] == "/aws/sagemaker/Endpoints" and metric.get("Unit", "Percent") == "Percent"
    )
    return is_published and dimensions == wanted and metric["Statistic"] == "Average"


def _metric(code: StackCode, metric: Answer) -> Call:
    module = code.module("cloudwatch", "aws_cloudwatch")
    dimensions: Options = {}
    for each in metric.get("Dimensions", []):
        is_name = each["Value"] == code.running.name
        dimensions[quoted(each["Name"])] = "ENDPOINT_NAME" if is_name else literal(each["Value"])
    keywords: Options = {
        "namespace": literal(metric["Namespace"]),
        "metric_name": literal(metric["MetricName"]),
        "dimensions_map": Items(dimensions),
        "statistic": literal(metric["Statistic"]),
    }
    if metric.get("Unit"):
        unit = "_PER_".join(part.upper() for part in metric["Unit"].split("/"))
        keywords["unit"] = f"{module}.Unit.{unit}"
    return Call(f"{module}.Metric", [], keywords)


def _action(code: StackCode, action: Answer) -> Iterator[Call]:
    name = action["ScheduledActionName"]
    if action.get("StartTime") or action.get("EndTime"):
        code.adoption.refuse(
            "scheduled-action",
            f"{action['ResourceId']}: scheduled action {name} has a start or an end, so it is not carried "
            "over; add it by hand with scale_on_schedule",
        )
        return
    module = code.module("appscaling", "aws_applicationautoscaling")
    options: Options = {"schedule": Call(f"{module}.Schedule.expression", [literal(action["Schedule"])])}
    bounds = action.get("ScalableTargetAction") or {}
    for keyword, member in (("min_capacity", "MinCapacity"), ("max_capacity", "MaxCapacity")):
        if member in bounds:
            options[keyword] = str(bounds[member])
    if action.get("Timezone"):
        options["time_zone"] = Call("cdk.TimeZone.of", [literal(action["Timezone"])])
    yield Call("scale_on_schedule", [literal(name)], options)
