"""The rules of ``TritonAlarms``: metric, threshold and evaluation periods of each alarm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.monitoring.alarm_set import (
    PERCENT,
    AlarmRule,
    SharedThresholds,
    error_rules,
    latency_rules,
)
from constructs_triton.cdk.monitoring.interfaces import ITritonEndpoint
from constructs_triton.cdk.monitoring.monitored_endpoint import metric_units
from constructs_triton.cdk.options.variant_options import TEN_MINUTES
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant
from constructs_triton.cdk.scaling.targets import microseconds, not_multiplied, product
from constructs_triton.cdk.validation.properties import DurationDefault
from constructs_triton.cdk.validation.read_once import duration_of, milliseconds_of
from constructs_triton_core.declared_values import Value
from constructs_triton_core.facts.limits import RangeLimit

_Comparison = cloudwatch.ComparisonOperator
_Missing = cloudwatch.TreatMissingData
# CloudWatch API reference, PutMetricAlarm: a week for periods of an hour, a day for shorter ones.
_WINDOW_SECONDS = RangeLimit(60, 7 * 86400, "seconds")


class AlarmThresholds(SharedThresholds, total=False):
    """Thresholds of the alarms. Set one to ``None`` to leave its alarm out."""

    gpu_memory_percent: Annotated[
        float | None,
        Value(
            "Maximum percentage, 0 to 100, of each GPU's memory in use on any instance, for five "
            "minutes. No alarm if the number of GPUs is unknown.",
            default=90,
            limit=PERCENT,
        ),
    ]
    disk_percent: Annotated[
        float | None,
        Value(
            "Maximum percentage, 0 to 100, of the disk space "
            "in use on any instance, for five minutes.",
            default=85,
            limit=PERCENT,
        ),
    ]
    model_cache_hit_percent: Annotated[
        float | None,
        Value(
            "Minimum percentage, 0 to 100, of a multi-model endpoint's requests whose model is "
            "already loaded, for 15 minutes. With fewer, models are unloaded to make room for each "
            "other.",
            default=80,
            limit=PERCENT,
        ),
    ]
    model_loading_wait: Annotated[
        Duration | None,
        Value(
            "Maximum average time that requests of a multi-model "
            "endpoint wait for their model, for 15 minutes.",
            default=DurationDefault(10, "seconds"),
            example=TEN_MINUTES,
        ),
    ]
    at_max_capacity_for: Annotated[
        Duration | None,
        Value(
            "Time at the maximum instance count of scaling, 1 minute to 7 days.",
            default=DurationDefault(1, "hours"),
            example=TEN_MINUTES,
            limit=_WINDOW_SECONDS,
        ),
    ]
    no_invocations_for: Annotated[
        Duration | None,
        Value(
            "Time without requests, while you pay for the instances, 1 minute to 7 days.",
            default=DurationDefault(1, "days"),
            example=TEN_MINUTES,
            limit=_WINDOW_SECONDS,
        ),
    ]
    oldest_request_age: Annotated[
        Duration | None,
        Value(
            "Maximum age of the oldest request in the queue "
            "of an asynchronous endpoint, for five minutes.",
            default=DurationDefault(1, "hours"),
            example=TEN_MINUTES,
        ),
    ]
    queue_time: Annotated[
        Duration | None,
        Value(
            "Maximum average time that requests wait in the queue of any model, in three of five "
            "minutes. Needs ``container_metrics=True``.",
            default_text="no alarm",
            example=TEN_MINUTES,
        ),
    ]
    container_metrics_missing_for: Annotated[
        Duration | None,
        Value(
            "Time without Triton's metrics, of an endpoint with ``container_metrics=True``, 1 "
            "minute to 7 days: the model that publishes them may have ended, which nothing else "
            "shows. Not for asynchronous endpoints, which may have no instances.",
            default=DurationDefault(30, "minutes"),
            example=TEN_MINUTES,
            limit=_WINDOW_SECONDS,
        ),
    ]


def variant_rules(
    endpoint: ITritonEndpoint, variant: EndpointVariant, thresholds: AlarmThresholds
) -> Iterator[AlarmRule]:
    """Yield the alarms of one variant, errors and latency first."""
    is_asynchronous = endpoint.is_asynchronous
    yield from error_rules(
        variant._metric, thresholds["error_rate_percent"], _error_causes(endpoint)
    )
    yield from latency_rules(variant._metric, thresholds["model_latency_objective"])
    yield from _memory_rules(variant, thresholds["gpu_memory_percent"])
    yield from _disk_rules(variant, thresholds["disk_percent"])
    if endpoint.is_multi_model:
        yield from _loading_rules(
            variant, thresholds["model_cache_hit_percent"], thresholds["model_loading_wait"]
        )
    yield from _capacity_rules(
        variant, thresholds["at_max_capacity_for"], from_queue=is_asynchronous
    )
    if not is_asynchronous:
        yield from _idle_rules(variant, thresholds["no_invocations_for"])
    yield from _queue_rules(variant, thresholds["queue_time"])
    if variant.publishes_container_metrics and not is_asynchronous:
        yield from _missing_rules(variant, thresholds["container_metrics_missing_for"])


def endpoint_rules(endpoint: ITritonEndpoint, thresholds: AlarmThresholds) -> Iterator[AlarmRule]:
    """Yield the alarm on the queue, which all variants of an asynchronous endpoint share."""
    age = thresholds["oldest_request_age"]
    if endpoint.is_asynchronous and age is not None:
        yield AlarmRule(
            name="OldestRequest",
            description=(
                "A request has been queued for a long time: instances are too few, or fail."
            ),
            metric=endpoint.variants[0]._metric("ApproximateAgeOfOldestRequest"),
            threshold=age.to_seconds(),
        )


def _error_causes(endpoint: ITritonEndpoint) -> Iterator[tuple[str, str, str]]:
    yield "ServerErrors", "Invocation5XXErrors", "The endpoint responds with 5xx."
    if not endpoint.is_asynchronous:  # not published
        yield "ModelErrors", "InvocationModelErrors", "The container does not respond with 2xx."


def _memory_rules(variant: EndpointVariant, percent: float | None) -> Iterator[AlarmRule]:
    """Yield the rule about the GPU memory, if the instances have GPUs."""
    gpus = metric_units(variant, "GPUMemoryUtilization")
    if percent is None or gpus is None:
        return
    yield AlarmRule(
        name="GpuMemory",
        description="GPU memory is almost full: models are unloaded, or fail to load.",
        metric=variant._metric("GPUMemoryUtilization", statistic="Maximum"),
        threshold=product("gpu_memory_percent", percent, gpus),
    )


def _disk_rules(variant: EndpointVariant, percent: float | None) -> Iterator[AlarmRule]:
    if percent is not None:
        yield AlarmRule(
            name="Disk",
            description="The disk is almost full: models can no longer be downloaded.",
            metric=variant._metric("DiskUtilization", statistic="Maximum"),
            threshold=percent,
        )


def _loading_rules(
    variant: EndpointVariant, percent: float | None, wait: Duration | None
) -> Iterator[AlarmRule]:
    """Yield the rules about models that a multi-model endpoint loads and unloads."""
    if percent is not None:
        yield AlarmRule(
            name="ModelCacheHit",
            description=(
                "Too many requests find their model not loaded: memory is too small for the models."
            ),
            metric=variant._metric("ModelCacheHit", period=duration_of(300)),
            threshold=product("model_cache_hit_percent", percent, 0.01),
            comparison=_Comparison.LESS_THAN_THRESHOLD,
            evaluation_periods=3,
        )
    if wait is not None:
        yield AlarmRule(
            name="ModelLoadingWait",
            description="Requests wait too long until their model is downloaded and loaded.",
            metric=variant._metric("ModelLoadingWaitTime", period=duration_of(300)),
            threshold=microseconds("model_loading_wait", wait),
            evaluation_periods=3,
        )


def _capacity_rules(
    variant: EndpointVariant, duration: Duration | None, *, from_queue: bool
) -> Iterator[AlarmRule]:
    """Yield the rule about a variant that scaling has brought to its maximum for a while."""
    scalable = variant.scalable_instance_count
    if duration is None or scalable is None or scalable.min_capacity == scalable.max_capacity:
        return
    period, periods = _window("at_max_capacity_for", duration)
    yield AlarmRule(
        name="AtMaxCapacity",
        description="Scaling has reached max_capacity: if requests wait or fail, raise it.",
        metric=variant._instance_count(from_queue=from_queue, period=period),
        threshold=scalable.max_capacity,
        comparison=_Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=periods,
    )


def _idle_rules(variant: EndpointVariant, duration: Duration | None) -> Iterator[AlarmRule]:
    if duration is None:
        return
    period, periods = _window("no_invocations_for", duration)
    yield AlarmRule(
        name="NoInvocations",
        description="The endpoint has had no requests, but its instances cost money.",
        metric=variant._metric("Invocations", period=period),
        threshold=1,
        comparison=_Comparison.LESS_THAN_THRESHOLD,
        evaluation_periods=periods,
        # Without requests there is no data.
        missing=_Missing.BREACHING,
    )


def _queue_rules(variant: EndpointVariant, longest: Duration | None) -> Iterator[AlarmRule]:
    """Yield an alarm for each model: a step of an ensemble waits in a queue of its own."""
    if longest is None:
        return
    for model in variant.container_metrics.models:
        yield AlarmRule(
            name=f"QueueTime{model}",
            description=f'Requests wait too long in the queue of model "{model}".',
            metric=variant.container_metrics._average("queue", model),
            threshold=microseconds("queue_time", longest),
            datapoints_to_alarm=3,
        )


def _missing_rules(variant: EndpointVariant, duration: Duration | None) -> Iterator[AlarmRule]:
    """Yield the rule about a variant whose instances publish no metrics of Triton for a while."""
    if duration is None:
        return
    period, periods = _window("container_metrics_missing_for", duration)
    metrics = variant.container_metrics
    yield AlarmRule(
        name="ContainerMetricsMissing",
        description="No instance publishes Triton's metrics: its model _metrics may have ended.",
        metric=metrics._metric(
            "Requests", metrics.models[0], statistic="SampleCount", period=period
        ),
        threshold=1,
        comparison=_Comparison.LESS_THAN_THRESHOLD,
        evaluation_periods=periods,
        missing=_Missing.BREACHING,
    )


def _window(property: str, duration: Duration) -> tuple[Duration, int]:
    """Return a period, and the number of periods in a duration."""
    milliseconds = milliseconds_of(duration)
    if milliseconds is None:
        raise not_multiplied(property)

    total_seconds = milliseconds / 1000
    period_seconds = 60
    if total_seconds >= 24 * 3600:
        period_seconds = 3600
    elif total_seconds >= 15 * 60:
        period_seconds = 5 * 60
    return duration_of(period_seconds), math.ceil(total_seconds / period_seconds)
