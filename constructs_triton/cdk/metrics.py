"""CloudWatch metrics of an endpoint's variants, each in the namespace SageMaker publishes it to."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = ["INSTANCE_NAMESPACE", "INVOCATION_NAMESPACE", "variant_metric"]

INVOCATION_NAMESPACE = "AWS/SageMaker"
INSTANCE_NAMESPACE = "/aws/sagemaker/Endpoints"

_PERIOD_SECONDS = 60  # SageMaker publishes once a minute


@dataclass(frozen=True, slots=True)
class _Definition:
    """Where a metric is published, and the statistic and unit that make sense of it."""

    namespace: str
    statistic: str
    unit: cloudwatch.Unit | None = None


def _definition(metric_name: str) -> _Definition:
    percent = cloudwatch.Unit.PERCENT
    by_name = {
        "CPUUtilization": _Definition(INSTANCE_NAMESPACE, "Average", percent),
        "DiskUtilization": _Definition(INSTANCE_NAMESPACE, "Average", percent),
        "GPUMemoryUtilization": _Definition(INSTANCE_NAMESPACE, "Average", percent),
        "GPUUtilization": _Definition(INSTANCE_NAMESPACE, "Average", percent),
        "LoadedModelCount": _Definition(INSTANCE_NAMESPACE, "Average"),
        "MemoryUtilization": _Definition(INSTANCE_NAMESPACE, "Average", percent),
        "ModelCacheHit": _Definition(INVOCATION_NAMESPACE, "Average"),
        "ModelLatency": _Definition(INVOCATION_NAMESPACE, "Average", cloudwatch.Unit.MICROSECONDS),
        "OverheadLatency": _Definition(INVOCATION_NAMESPACE, "Average", cloudwatch.Unit.MICROSECONDS),
    }
    return by_name.get(metric_name, _Definition(INVOCATION_NAMESPACE, "Sum"))


def variant_metric(
    metric_name: str,
    *,
    endpoint_name: str,
    variant_name: str,
    statistic: str | None = None,
    period: Duration | None = None,
) -> cloudwatch.Metric:
    """A metric of one variant: dimensions ``EndpointName`` and ``VariantName``.

    Source: SageMaker developer guide, "Monitor SageMaker AI with Amazon CloudWatch".
    """
    definition = _definition(metric_name)
    return cloudwatch.Metric(
        namespace=definition.namespace,
        metric_name=metric_name,
        dimensions_map={"EndpointName": endpoint_name, "VariantName": variant_name},
        statistic=definition.statistic if statistic is None else statistic,
        unit=definition.unit,
        period=Duration.seconds(_PERIOD_SECONDS) if period is None else period,
    )
