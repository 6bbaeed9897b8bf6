"""Namespace, default statistic and unit of each metric that SageMaker publishes for an endpoint.

``published_metrics.json`` has the metrics and the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypedDict

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.metrics.metric_values import ExpressionValue, MetricValue
from constructs_triton.cdk.validation.arguments import check_period, check_string
from constructs_triton_core.facts import facts_of

_load = facts_of(__package__)


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """Namespace, default statistic and unit of a metric.

    CloudWatch filters by ``unit``; it is ``None`` if the documentation has no unit.
    ``has_variant_dimension`` is false for the queue of an asynchronous endpoint, which all variants
    share: CloudWatch has no data for its metrics with a ``VariantName``. ``endpoint_namespace`` is
    where a metric of components is published for the instances of their endpoint.
    """

    namespace: str
    statistic: str
    unit: cloudwatch.Unit | None = None
    has_variant_dimension: bool = True
    endpoint_namespace: str | None = None

    def namespace_for(self, dimensions: Mapping[str, str]) -> str:
        """Return the namespace of the metric of an endpoint or a component."""
        if self.endpoint_namespace is not None and "EndpointName" in dimensions:
            return self.endpoint_namespace
        return self.namespace


@cache
def _definitions() -> dict[str, MetricDefinition]:
    table: dict[str, MetricDefinition] = {}
    for group in _load("published_metrics")["groups"]:
        unit = cloudwatch.Unit[group["unit"]] if "unit" in group else None
        has_variant = group.get("has_variant_dimension", True)
        definition = MetricDefinition(
            group["namespace"],
            group["statistic"],
            unit,
            has_variant,
            group.get("endpoint_namespace"),
        )
        table |= dict.fromkeys(group["metrics"], definition)
    return table


def metric_definition(metric_name: str) -> MetricDefinition:
    """Return the definition of a metric; a metric that is not in the table is
    a sum over invocations.
    """
    check_string("metric_name", metric_name)
    return _definitions().get(metric_name, MetricDefinition("AWS/SageMaker", "Sum"))


class MetricOptions(TypedDict, total=False):
    """Options of every ``metric`` method.

    ``statistic``
        CloudWatch's name, such as ``"Average"``, ``"Sum"`` or ``"p99"``. Default: the usual
        statistic of the metric.
    ``period``
        Time over which values are aggregated. Default: one minute, the interval at which SageMaker
        publishes.
    ``label``, ``color``
        Label and color in graphs. Default: chosen by CloudWatch.
    ``instance_type``
        Name of one instance type of an endpoint with ``instance_pools``. Default: all types
        together.
    """

    statistic: str | None
    period: Duration | None
    label: str | None
    color: str | None
    instance_type: str | None


def published_metric(
    metric_name: str, dimensions: dict[str, str], options: MetricOptions
) -> MetricValue:
    """Return a metric of SageMaker with its usual statistic and unit, published each minute."""
    for name in ("statistic", "label", "color", "instance_type"):
        check_string(name, options.get(name))
    check_period(options.get("period"))
    definition = metric_definition(metric_name)
    statistic, period = options.get("statistic"), options.get("period")
    if (instance_type := options.get("instance_type")) is not None:
        dimensions = {**dimensions, "InstanceType": instance_type}
    return MetricValue(
        namespace=definition.namespace_for(dimensions),
        metric_name=metric_name,
        dimensions_map=dimensions,
        statistic=definition.statistic if statistic is None else statistic,
        unit=definition.unit,
        period=60 if period is None else period,
        label=options.get("label"),
        color=options.get("color"),
    )


def number_metric(metrics: Mapping[str, MetricValue], label: str) -> ExpressionValue:
    """Return metric math for a number of instances or copies: ``total`` divided by ``share``."""
    # Rounded, because three times a third is not exactly 1 in floating point.
    number, period = "FLOOR(total / share + 0.5)", metrics["total"].period
    return ExpressionValue(expression=number, using_metrics=metrics, period=period, label=label)


def or_p99(options: MetricOptions) -> MetricOptions:
    """Return the options with ``p99`` as the default statistic."""
    return options if options.get("statistic") is not None else {**options, "statistic": "p99"}
