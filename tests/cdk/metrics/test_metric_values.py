"""Metrics as values against the CDK's objects: both must become the same JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.metrics.metric_values import (
    ExpressionValue,
    Metric,
    MetricValue,
    converted,
    graph_metrics,
)

CALLS = MetricValue(
    namespace="AWS/SageMaker",
    metric_name="Invocations",
    dimensions_map={"VariantName": "blue", "EndpointName": "digits"},
    statistic="Sum",
)
LATENCY = replace(
    CALLS, metric_name="ModelLatency", statistic="p99", unit=cloudwatch.Unit.MICROSECONDS
)
AVERAGE = replace(CALLS, statistic="Average", period=300)
MILLISECONDS = converted(LATENCY, "m0", "/ 1000", "ModelLatency p99")
SHARE = ExpressionValue(
    expression="each / calls", using_metrics={"each": MILLISECONDS, "calls": CALLS}, label="share"
)

GRAPHS: dict[str, tuple[list[Metric], list[Metric]]] = {
    "plain metrics": ([CALLS, replace(LATENCY, label="latency", color="#ff0000")], []),
    "defaults of a graph are left out": ([AVERAGE], []),
    "both axes": ([CALLS], [AVERAGE, MILLISECONDS]),
    "an expression over expressions": ([SHARE], []),
    "one metric under two ids": ([MILLISECONDS, converted(LATENCY, "m1", "/ 10", "other")], []),
    "one id in two expressions": ([MILLISECONDS, converted(LATENCY, "m0", "* 2", "double")], []),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_those_of_the_cdk(stack: cdk.Stack, name: str) -> None:
    """The lines of a graph are the ones that a ``GraphWidget`` has of the same metrics."""
    left, right = GRAPHS[name]
    widget = cloudwatch.GraphWidget(
        left=[each.to_cdk() for each in left], right=[each.to_cdk() for each in right]
    )
    expected = stack.to_json_string(widget.to_json()[0]["properties"]["metrics"])
    assert graph_metrics(left, right)
    assert stack.resolve(stack.to_json_string(graph_metrics(left, right))) == stack.resolve(
        expected
    )


def test_metric_of_the_cdk_has_all_properties() -> None:
    """What a user gets is the CDK's metric, with the unit,
    the period and the looks of the value.
    """
    value = replace(LATENCY, label="latency", color="#ff0000", period=cdk.Duration.minutes(5))
    metric: Any = value.to_cdk()
    assert isinstance(metric, cloudwatch.Metric)
    assert (metric.label, metric.color, metric.unit) == (
        "latency",
        "#ff0000",
        cloudwatch.Unit.MICROSECONDS,
    )
    assert (metric.period.to_seconds(), metric.statistic) == (300, "p99")
    assert metric.dimensions == CALLS.dimensions_map
