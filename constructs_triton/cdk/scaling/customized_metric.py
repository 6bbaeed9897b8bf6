"""Converts a CloudWatch metric or metric math for a target tracking policy."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton_core.errors import InvalidValueError

_Policy = appscaling.CfnScalingPolicy
_SINGLE_STATISTICS = frozenset({"Average", "Minimum", "Maximum", "SampleCount", "Sum"})
_RESULT_ID = "result"


def customized_metric(
    metric: cloudwatch.IMetric,
) -> appscaling.CfnScalingPolicy.CustomizedMetricSpecificationProperty:
    """Return the ``CustomizedMetricSpecification`` of a metric.

    A plain metric with one of the five simple statistics becomes the short form. Metric math and percentiles,
    which CDK's own target tracking does not support, become a list of queries. The last query is the result.
    The period is left out, because the service has no such field: it evaluates each minute.

    Raises:
        InvalidValueError: two metrics of an expression have the same id.
    """
    stat = metric.to_metric_config().metric_stat
    if stat is not None and stat.statistic in _SINGLE_STATISTICS:
        return _Policy.CustomizedMetricSpecificationProperty(
            namespace=stat.namespace,
            metric_name=stat.metric_name,
            statistic=stat.statistic,
            unit=_unit(stat),
            dimensions=[
                _Policy.MetricDimensionProperty(name=each.name, value=each.value)
                for each in stat.dimensions or ()
            ],
        )
    queries: dict[str, Any] = {}
    _add_query(queries, _RESULT_ID, metric, is_result=True)
    return _Policy.CustomizedMetricSpecificationProperty(metrics=list(queries.values()))


def metric_key(scope: Construct, metric: cloudwatch.IMetric) -> str:
    """Return a string that is equal for equal metrics, whatever their statistics."""
    return json.dumps(Stack.of(scope).resolve(_identity(metric)), sort_keys=True)


def metric_name_of(metric: cloudwatch.IMetric) -> str:
    """Return the metric's name, or its expression."""
    config = metric.to_metric_config()
    if config.metric_stat is not None:
        return config.metric_stat.metric_name
    return "" if config.math_expression is None else config.math_expression.expression


def _identity(metric: cloudwatch.IMetric) -> Any:
    config = metric.to_metric_config()
    stat, expression = config.metric_stat, config.math_expression
    if stat is not None:
        dimensions = {each.name: each.value for each in stat.dimensions or ()}
        return [stat.namespace, stat.metric_name, dimensions]
    if expression is None:
        return []
    used = {name: _identity(each) for name, each in expression.using_metrics.items()}
    return [expression.expression, used]


def _add_query(
    queries: dict[str, Any], id: str, metric: cloudwatch.IMetric, *, is_result: bool = False
) -> None:
    config = metric.to_metric_config()
    stat, expression = config.metric_stat, config.math_expression
    if expression is not None:
        for name, used in expression.using_metrics.items():
            _add_query(queries, name, used)
    query = _Policy.TargetTrackingMetricDataQueryProperty(
        id=id,
        expression=None if expression is None else expression.expression,
        metric_stat=None if stat is None else _metric_stat(stat),
        return_data=is_result,
    )
    # Two structs with the same content are equal, so a metric may be used twice.
    if queries.setdefault(id, query) != query:
        raise InvalidValueError(
            f'metric: two metrics of the expression have the id "{id}"; rename one of them'
        )


def _metric_stat(stat: cloudwatch.MetricStatConfig) -> Any:
    return _Policy.TargetTrackingMetricStatProperty(
        metric=_Policy.TargetTrackingMetricProperty(
            namespace=stat.namespace,
            metric_name=stat.metric_name,
            dimensions=[
                _Policy.TargetTrackingMetricDimensionProperty(name=each.name, value=each.value)
                for each in stat.dimensions or ()
            ],
        ),
        stat=stat.statistic,
        unit=_unit(stat),
    )


def _unit(stat: cloudwatch.MetricStatConfig) -> str | None:
    """Convert the CDK's name of a unit to CloudWatch's: ``BYTES_PER_SECOND`` to ``Bytes/Second``."""
    if stat.unit_filter is None:
        return None
    return "/".join(word.capitalize() for word in stat.unit_filter.name.split("_PER_"))
