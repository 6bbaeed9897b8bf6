"""Account and Region of metrics: those of the endpoint or the component, wherever a graph is.

The methods come from the classes, so a new one is asked too.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from cdk_apps import flat, only, synthesize

from constructs_triton import TritonComponentEndpoint, TritonEndpoint, TritonInferenceComponent

THERE = "arn:aws:sagemaker:us-east-1:210987654321"
HERE = cdk.Environment(account="123456789012", region="eu-west-1")


def owners(stack: cdk.Stack) -> dict[str, Any]:
    """Return an endpoint, a variant and a component of another account and Region."""
    endpoint = TritonEndpoint.from_endpoint_attributes(
        stack, "E", endpoint_name="Digits", endpoint_arn=f"{THERE}:endpoint/digits"
    )
    host = TritonComponentEndpoint.from_endpoint_name(stack, "Host", "host")
    component = TritonInferenceComponent.from_inference_component_arn(
        stack, "C", f"{THERE}:inference-component/digits", endpoint=host
    )
    return {"endpoint": endpoint, "variant": endpoint.variants[0], "component": component}


def metric_methods(owner: Any) -> Iterator[tuple[str, Any]]:
    for name, _ in inspect.getmembers(type(owner), inspect.isfunction):
        if name.startswith("metric"):
            yield name, getattr(owner, name)


def published(metric: Any) -> list[cloudwatch.MetricStatConfig]:
    """Return the metric, or the metrics of an expression."""
    config = metric.to_metric_config()
    if config.metric_stat is not None:
        return [config.metric_stat]
    found = []
    for used in config.math_expression.using_metrics.values():
        found += published(used)
    return found


@pytest.mark.parametrize("kind", ["endpoint", "variant", "component"])
def test_every_metric_is_of_the_place_of_its_owner(kind: str) -> None:
    """Each metric method of what was imported from another account and Region names both."""
    owner = owners(cdk.Stack(cdk.App(), "Test", env=HERE))[kind]
    found = {
        (name, stat.account, stat.region)
        for name, method in metric_methods(owner)
        for stat in published(method("Invocations") if name == "metric" else method())
    }
    assert {(account, region) for _, account, region in found} == {("210987654321", "us-east-1")}
    assert {name for name, *_ in found} == {name for name, _ in metric_methods(owner)}


def test_graph_in_another_region_names_the_region() -> None:
    """A dashboard of the CDK in another Region reads the metric where the endpoint is."""
    stack = cdk.Stack(cdk.App(), "Test", env=HERE)
    metric = owners(stack)["endpoint"].metric_invocations()
    board = cloudwatch.Dashboard(stack, "Board")
    board.add_widgets(cloudwatch.GraphWidget(left=[metric]))
    body = flat(only(synthesize(stack), "AWS::CloudWatch::Dashboard")["DashboardBody"])
    (line,) = json.loads(body)["widgets"][0]["properties"]["metrics"]
    assert (line[-1]["accountId"], line[-1]["region"]) == ("210987654321", "us-east-1")


def test_metric_of_the_own_region_has_no_place_in_the_template() -> None:
    """An alarm on a metric of its own account and Region stays as it was."""
    stack = cdk.Stack(cdk.App(), "Test", env=HERE)
    metric = TritonEndpoint.from_endpoint_name(stack, "E", "digits").metric_invocations()
    metric.create_alarm(stack, "Idle", threshold=1, evaluation_periods=1)
    assert only(synthesize(stack), "AWS::CloudWatch::Alarm")["MetricName"] == "Invocations"
