"""Scaling of a variant with several instance types, which may serve different loads.

AWS publishes no example that stays right when instances of only one type run: a sum of shares
counts the types that do not run as idle. The expression here is derived, not measured on AWS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Annotations
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.metrics.metric_values import ExpressionValue
from constructs_triton.cdk.permissions.alarm_topics import let_alarms_publish
from constructs_triton.cdk.scaling.target_tracking import PublishedMetric
from constructs_triton.cdk.scaling.targets import check_positive, not_multiplied
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.tokens import is_token

_CONCURRENT = "ConcurrentRequestsPerModel"
_MISSING_MINUTES = 5


def check_loads(
    property: str, loads: Mapping[str, float], types: Sequence[InstanceType]
) -> Mapping[str, float]:
    """Check the load that an instance of each type serves,
    and return it in the order of the types.
    """
    names = [instance_type.name for instance_type in types]
    if len(names) == 1:
        raise InvalidValueError(
            f"{property}: numbers for each instance type need instance_pools, and the variant has "
            f'one type, "{names[0]}"; use a policy without them, such as '
            "scale_on_concurrent_requests"
        )
    check_type(property, loads, (Mapping, f'{{"{names[0]}": 8, ...}}'))
    for name in names:
        if name not in loads:
            raise InvalidValueError(
                f"{property}: must have a number for each instance type, and has none for "
                f'"{name}"; measure it with constructs-triton load-test and add it'
            )
    for name, load in loads.items():
        if name not in names:
            raise InvalidValueError(
                f'{property}: must have the instance types of the variant, got "{name}"; remove '
                "it, or add it to instance_pools"
            )
        if is_token(load):
            raise not_multiplied(f'{property}["{name}"]')
        check_positive(f'{property}["{name}"]', load)
    return {name: loads[name] for name in names}


def slowest_load(
    property: str, load: float | Mapping[str, float] | None, types: Sequence[InstanceType]
) -> float | None:
    """Return a load per instance that all types can serve: that of the slowest,
    if each has its own.
    """
    if isinstance(load, Mapping):
        return min(check_loads(property, load, types).values())
    return load


def warn_of_one_load(scope: Construct, id: str, types: Sequence[InstanceType]) -> None:
    """Warn of one load for types that differ in their GPU or in their number of GPUs or vCPUs."""
    hardware = {
        (instance_type.gpu_model, instance_type.gpus, instance_type.vcpus)
        for instance_type in types
    }
    if len(hardware) > 1:
        rates = ", ".join(f'"{instance_type}": ...' for instance_type in types)
        Annotations.of(scope).add_warning_v2(
            "constructs-triton:instance-pools-one-load",
            f"{id}: the target is the same for all instance types, and they differ; set "
            f"max_requests_per_second={{{rates}}}, "
            "or acknowledge this if the target is that of the slowest type",
        )


def check_same_units(metric_name: str, units: str, types: Sequence[InstanceType]) -> None:
    """Check that all types have the same number of GPUs or vCPUs.

    ``units`` is ``"gpus"`` or ``"vcpus"``. The metric's range is 0 to 100 times this number.
    """
    counts = {instance_type.name: getattr(instance_type, units) for instance_type in types}
    known = {count for count in counts.values() if count is not None}
    if len(known) > 1:
        hardware = "GPUs" if units == "gpus" else "vCPUs"
        shown = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise InvalidValueError(
            f"{metric_name}: one target does not fit instance types with different numbers of "
            f"{hardware}, got {shown}; use scale_on_concurrent_requests_by_type or "
            "scale_on_invocations_per_instance"
        )


def busiest_share(published: PublishedMetric, loads: Mapping[str, float]) -> ExpressionValue:
    """Return the concurrent requests of the busiest type, in percent of what an instance processes.

    A type without instances publishes nothing, and counts as 0.
    """
    shares = []
    metrics = {}
    for position, (instance_type, load) in enumerate(loads.items()):
        metric_id = f"load{position}"
        shares.append(f"FILL({metric_id}, 0) / {load:g}")
        metrics[metric_id] = published(
            _CONCURRENT, statistic="Average", instance_type=instance_type
        )
    return ExpressionValue(
        expression=f"100 * MAX([{', '.join(shares)}])",
        using_metrics=metrics,
        label="Load of the busiest instance type",
    )


def add_missing_data_alarm(
    scope: Construct, id: str, published: PublishedMetric, types: Sequence[InstanceType]
) -> cloudwatch.Alarm:
    """Add an alarm for the case that no type publishes its load,
    which the policy takes for no load.
    """
    metrics = {
        f"samples{position}": published(
            _CONCURRENT, statistic="SampleCount", instance_type=instance_type.name
        )
        for position, instance_type in enumerate(types)
    }
    count = ExpressionValue(
        expression=" + ".join(f"FILL({metric_id}, 0)" for metric_id in metrics),
        using_metrics=metrics,
        label="Published values of all instance types",
    )
    alarm = cloudwatch.Alarm(
        scope,
        id,
        metric=count.to_cdk(),
        alarm_description=(
            "No instance type publishes its concurrent requests: scaling takes this for no load "
            "and removes instances."
        ),
        comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
        threshold=1,
        evaluation_periods=_MISSING_MINUTES,
        treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
    )
    let_alarms_publish(scope, [alarm])
    return alarm
