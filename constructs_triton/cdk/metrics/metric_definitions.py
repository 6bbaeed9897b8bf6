"""Namespace, default statistic and unit of each metric that SageMaker publishes for an endpoint.

Sources: SageMaker developer guide, "Monitor SageMaker AI with Amazon CloudWatch" and "Alarms and logs for
tracking metrics from asynchronous endpoints".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = [
    "COMPONENT_NAMESPACE",
    "INSTANCE_NAMESPACE",
    "INVOCATION_NAMESPACE",
    "MetricDefinition",
    "metric_definition",
]

INVOCATION_NAMESPACE = "AWS/SageMaker"
INSTANCE_NAMESPACE = "/aws/sagemaker/Endpoints"
COMPONENT_NAMESPACE = "/aws/sagemaker/InferenceComponents"

_COUNTS = (
    "Invocations",
    "InvocationsPerInstance",
    "Invocation4XXErrors",
    "Invocation5XXErrors",
    "InvocationModelErrors",
    "MidStreamErrors",
    # Asynchronous endpoints.
    "ExpiredRequests",
    "InvocationFailures",
    "NotificationFailures",
    "RequestDownloadFailures",
    "ResponseUploadFailures",
)
_TIMES_IN_MICROSECONDS = (
    "ModelLatency",
    "OverheadLatency",
    # Response streams.
    "FirstChunkLatency",
    "FirstChunkModelLatency",
    "FirstChunkOverheadLatency",
    # Multi-model endpoints.
    "ModelDownloadingTime",
    "ModelLoadingTime",
    "ModelLoadingWaitTime",
    "ModelUnloadingTime",
    # Asynchronous endpoints.
    "RequestDownloadLatency",
    "ResponseUploadLatency",
    "TimeInBacklog",
)
_UTILIZATIONS = (
    "CPUUtilization",
    "DiskUtilization",
    "GPUMemoryUtilization",
    "GPUUtilization",
    "MemoryUtilization",
)
# Of inference components: the documentation has no unit.
_NORMALIZED_UTILIZATIONS = (
    "CPUUtilizationNormalized",
    "GPUMemoryUtilizationNormalized",
    "GPUUtilizationNormalized",
    "MemoryUtilizationNormalized",
)
# Of endpoints with inference components.
_RESERVATIONS = ("CPUReservation", "GPUReservation", "MemoryReservation")


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """Namespace, default statistic and unit of a metric.

    CloudWatch filters by ``unit``; it is ``None`` if the documentation has no unit. ``has_variant_dimension``
    is false for the queue of an asynchronous endpoint, which all variants share: CloudWatch has no data for
    its metrics with a ``VariantName``.
    """

    namespace: str
    statistic: str
    unit: cloudwatch.Unit | None = None
    has_variant_dimension: bool = True


@cache
def _definitions() -> dict[str, MetricDefinition]:
    unit = cloudwatch.Unit
    table = {name: MetricDefinition(INVOCATION_NAMESPACE, "Sum") for name in _COUNTS}
    for name in _TIMES_IN_MICROSECONDS:
        table[name] = MetricDefinition(INVOCATION_NAMESPACE, "Average", unit.MICROSECONDS)
    for name in _UTILIZATIONS:
        table[name] = MetricDefinition(INSTANCE_NAMESPACE, "Average", unit.PERCENT)
    for name in _NORMALIZED_UTILIZATIONS:
        table[name] = MetricDefinition(COMPONENT_NAMESPACE, "Average")
    for name in _RESERVATIONS:
        table[name] = MetricDefinition(INSTANCE_NAMESPACE, "Average")
    return table | {
        "ConcurrentRequestsPerCopy": MetricDefinition(INVOCATION_NAMESPACE, "Maximum"),
        "ConcurrentRequestsPerModel": MetricDefinition(INVOCATION_NAMESPACE, "Maximum"),
        "LoadedModelCount": MetricDefinition(INSTANCE_NAMESPACE, "Average"),
        "ModelCacheHit": MetricDefinition(INVOCATION_NAMESPACE, "Average"),
        "TotalProcessingTime": MetricDefinition(INVOCATION_NAMESPACE, "Average", unit.MILLISECONDS),
        "ApproximateAgeOfOldestRequest": _queue("Maximum"),
        "ApproximateBacklogSize": _queue("Average"),
        "ApproximateBacklogSizePerInstance": _queue("Average"),
        "HasBacklogWithoutCapacity": _queue("Average"),
    }


def _queue(statistic: str) -> MetricDefinition:
    return MetricDefinition(INVOCATION_NAMESPACE, statistic, has_variant_dimension=False)


def metric_definition(metric_name: str) -> MetricDefinition:
    """Return the definition of a metric; a metric that is not in the table is a sum over invocations."""
    return _definitions().get(metric_name, MetricDefinition(INVOCATION_NAMESPACE, "Sum"))
