"""Converts a CloudWatch metric or metric math for a target tracking policy."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.metrics.metric_values import ExpressionValue, Metric, MetricValue
from constructs_triton.cdk.validation.read_once import stack_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token

_Policy = appscaling.CfnScalingPolicy
_Dimension = _Policy.MetricDimensionProperty
_QueryDimension = _Policy.TargetTrackingMetricDimensionProperty
_SINGLE_STATISTICS = frozenset({"Average", "Minimum", "Maximum", "SampleCount", "Sum"})
_RESULT_ID = "result"


def metric_value(metric: cloudwatch.IMetric) -> Metric:
    """Return a user's metric as a value, which reads each of its properties once."""
    config = metric.to_metric_config()
    stat = config.metric_stat
    expression = config.math_expression
    if stat is not None:
        return MetricValue(
            namespace=stat.namespace,
            metric_name=stat.metric_name,
            dimensions_map={dimension.name: dimension.value for dimension in stat.dimensions or ()},
            statistic=stat.statistic,
            unit=stat.unit_filter,
        )
    if expression is None:
        return ExpressionValue(expression="", using_metrics={})
    used = {name: metric_value(part) for name, part in expression.using_metrics.items()}
    return ExpressionValue(expression=expression.expression, using_metrics=used)


def customized_metric(
    metric: Metric,
) -> appscaling.CfnScalingPolicy.CustomizedMetricSpecificationProperty:
    """Return the ``CustomizedMetricSpecification`` of a metric.

    A plain metric with one of the five simple statistics becomes the short form. Metric math and
    percentiles, which CDK's own target tracking does not support, become a list of queries. The
    last query is the result.
    The period is left out, because the service has no such field: it evaluates each minute.

    Raises:
        InvalidValueError: two metrics of an expression have the same id.
    """
    if isinstance(metric, MetricValue) and metric.statistic in _SINGLE_STATISTICS:
        return _Policy.CustomizedMetricSpecificationProperty(
            namespace=metric.namespace,
            metric_name=metric.metric_name,
            statistic=metric.statistic,
            unit=_unit(metric),
            dimensions=[_Dimension(name=name, value=value) for name, value in metric.dimensions],
        )
    queries: dict[str, Any] = {}
    _add_query(queries, _RESULT_ID, metric, is_result=True)
    return _Policy.CustomizedMetricSpecificationProperty(metrics=list(queries.values()))


def metric_key(scope: Construct, metric: Metric) -> str:
    """Return a string that is equal for equal metrics, whatever their statistics."""
    identity = _identity(metric)
    resolved = stack_of(scope).resolve(identity) if is_token(repr(identity)) else identity
    return json.dumps(resolved, sort_keys=True)


def _identity(metric: Metric) -> list[Any]:
    """Return what makes a metric another one than others, without its looks in a graph."""
    if isinstance(metric, MetricValue):
        return [metric.namespace, metric.metric_name, {**metric.dimensions_map}]
    used = {name: _identity(part) for name, part in metric.using_metrics.items()}
    return [metric.expression, used]


def metric_name_of(metric: Metric) -> str:
    """Return the metric's name, or its expression."""
    return metric.metric_name if isinstance(metric, MetricValue) else metric.expression


def _add_query(
    queries: dict[str, Any], id: str, metric: Metric, *, is_result: bool = False
) -> None:
    """Add the query of a metric or an expression, and those of the metrics that it uses."""
    expression = None
    stat = None
    if isinstance(metric, MetricValue):
        stat = _metric_stat(metric)
    else:
        expression = metric.expression or None
        for name, used in metric.using_metrics.items():
            _add_query(queries, name, used)
    query = _Policy.TargetTrackingMetricDataQueryProperty(
        id=id, expression=expression, metric_stat=stat, return_data=is_result
    )
    # Two structs with the same content are equal, so a metric may be used twice.
    if queries.setdefault(id, query) != query:
        raise InvalidValueError(
            f'metric: two metrics of the expression have the id "{id}"; rename one of them'
        )


def _metric_stat(metric: MetricValue) -> Any:
    return _Policy.TargetTrackingMetricStatProperty(
        metric=_Policy.TargetTrackingMetricProperty(
            namespace=metric.namespace,
            metric_name=metric.metric_name,
            dimensions=[
                _QueryDimension(name=name, value=value) for name, value in metric.dimensions
            ],
        ),
        stat=metric.statistic,
        unit=_unit(metric),
    )


def _unit(metric: MetricValue) -> str | None:
    """Convert the CDK's name of a unit to CloudWatch's:
    ``BYTES_PER_SECOND`` to ``Bytes/Second``.
    """
    if metric.unit is None:
        return None
    return "/".join(word.capitalize() for word in metric.unit.name.split("_PER_"))
