"""The dashboard."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from cdk_apps import flat, import_endpoint, only, synthesize
from constructs import IConstruct

from constructs_triton import (
    InstanceType,
    ITritonEndpoint,
    TritonComponentDashboard,
    TritonComponentEndpoint,
    TritonDashboard,
    TritonEndpoint,
    TritonInferenceComponent,
    TritonMultiModelEndpoint,
)
from constructs_triton_core.errors import InvalidValueError


def widgets_of(stack: cdk.Stack) -> list[dict[str, Any]]:
    """Return the widgets of the only dashboard."""
    properties = only(synthesize(stack), "AWS::CloudWatch::Dashboard")
    widgets: list[dict[str, Any]] = json.loads(flat(properties["DashboardBody"]))["widgets"]
    return widgets


def graphs(stack: cdk.Stack) -> dict[str, dict[str, Any]]:
    """Return the properties of each graph of the only dashboard by title."""
    return {
        widget["properties"]["title"]: widget["properties"]
        for widget in widgets_of(stack)
        if widget["type"] == "metric"
    }


def lines(graph: dict[str, Any]) -> dict[str, str]:
    """Return the expression or metric name of each visible line of a graph by label.

    A metric is a list of its namespace, its name, its dimensions and then its options; an
    expression has only options.
    """
    shown = {}
    for *metric, options in graph["metrics"]:
        if options.get("visible") is False:
            continue
        name = metric[1] if metric else ""
        shown[options["label"]] = options.get("expression", name)
    return shown


def notes(graph: dict[str, Any]) -> dict[str, float]:
    """Return the value of each horizontal line of a graph by label."""
    return {note["label"]: note["value"] for note in graph["annotations"]["horizontal"]}


def test_two_graphs_fill_a_row(stack: cdk.Stack) -> None:
    """A dashboard has 24 columns, and each graph is 12 columns wide."""
    import_endpoint(stack).add_dashboard()
    widths = {widget["width"] for widget in widgets_of(stack) if widget["type"] == "metric"}
    assert widths == {12}


def test_real_time_endpoint(stack: cdk.Stack) -> None:
    """The dashboard shows traffic, latency in milliseconds, errors, utilization and instances."""
    import_endpoint(stack).add_dashboard(model_latency_objective=cdk.Duration.millis(250))
    found = graphs(stack)
    assert list(found) == [
        "Invocations",
        "Latency",
        "Errors",
        "Concurrent requests",
        "AllTraffic: utilization",
        "AllTraffic: instances",
    ]
    assert lines(found["Latency"]) == {
        "ModelLatency p50": "m0 / 1000",
        "ModelLatency p90": "m1 / 1000",
        "ModelLatency p99": "m2 / 1000",
        "OverheadLatency p50": "m3 / 1000",
        "OverheadLatency p99": "m4 / 1000",
    }
    assert notes(found["Latency"]) == {"objective": 250}


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("ml.g5.xlarge", {"GPUUtilization": "GPUUtilization", "CPUUtilization": "m2 / 4"}),
        ("ml.g5.12xlarge", {"GPUUtilization": "m0 / 4", "CPUUtilization": "m2 / 48"}),
        ("ml.p4d.24xlarge", {"GPUUtilization": "m0 / 8", "GPUMemoryUtilization": "m1 / 8"}),
    ],
)
def test_utilization_is_between_0_and_100(
    stack: cdk.Stack, instance_type: str, expected: dict[str, str]
) -> None:
    """Each metric, and each target of scaling, is divided by its number of GPUs or vCPUs."""
    types = {"blue": InstanceType.of(instance_type)}
    endpoint = import_endpoint(stack, variants=types)
    scaling = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    scaling.scale_on_gpu_utilization("Gpu")
    endpoint.add_dashboard()

    graph = graphs(stack)["blue: utilization"]

    assert expected.items() <= lines(graph).items()
    axis = graph["yAxis"]["left"]
    assert (axis["min"], axis["max"]) == (0, 100)
    assert notes(graph) == {"GPUUtilization target": 60}


def test_types_without_a_gpu_have_no_gpu_lines(stack: cdk.Stack) -> None:
    """A metric that is never published is not shown."""
    types = {"blue": InstanceType.of("ml.c5.xlarge")}
    import_endpoint(stack, variants=types).add_dashboard()
    shown = set(lines(graphs(stack)["blue: utilization"]))
    assert shown == {"CPUUtilization", "MemoryUtilization", "DiskUtilization"}


def test_unknown_type_has_an_axis_without_a_maximum(stack: cdk.Stack) -> None:
    """A metric that cannot be divided is shown as published."""
    import_endpoint(stack).add_dashboard()
    graph = graphs(stack)["AllTraffic: utilization"]
    assert lines(graph)["GPUUtilization"] == "GPUUtilization"
    assert "max" not in graph["yAxis"]["left"]


def test_scaling_is_shown(stack: cdk.Stack) -> None:
    """Graphs show the bounds beside the instances, and each target in their unit, by variant."""
    endpoint = import_endpoint(stack, variants={"blue": None, "green": None})
    blue = endpoint.variants[0].auto_scale_instance_count(min_capacity=2, max_capacity=6)
    blue.scale_on_invocations_per_instance("Calls", target_invocations_per_minute=900)
    blue.scale_on_model_latency("Latency", target_latency=cdk.Duration.millis(80))
    blue.scale_on_concurrent_requests("Busy", target_concurrent_requests=5)
    endpoint.add_dashboard()
    found = graphs(stack)
    assert notes(found["blue: instances"]) == {"min": 2, "max": 6}
    assert "annotations" not in found["green: instances"]
    assert notes(found["Invocations"]) == {"blue InvocationsPerInstance target": 900}
    assert notes(found["Latency"]) == {"blue ModelLatency target": 80}
    assert notes(found["Concurrent requests"]) == {"blue ConcurrentRequestsPerModel target": 5}


def test_multi_model_endpoint(stack: cdk.Stack) -> None:
    """The dashboard shows the loaded models, the cache hits in percent, and the loading times."""
    import_endpoint(stack, TritonMultiModelEndpoint).add_dashboard()
    found = graphs(stack)
    assert lines(found["Loaded models and cache hits"]) == {
        "LoadedModelCount": "LoadedModelCount",
        "ModelCacheHit": "m0 * 100",
    }
    assert set(lines(found["Model loading"])) == {
        "ModelLoadingWaitTime",
        "ModelDownloadingTime",
        "ModelLoadingTime",
        "ModelUnloadingTime",
    }


def test_asynchronous_endpoint(stack: cdk.Stack) -> None:
    """The dashboard shows the queue, and no metric that asynchronous endpoints do not publish."""
    endpoint = import_endpoint(stack, is_asynchronous=True)
    count = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=2)
    count.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    endpoint.add_dashboard()
    found = graphs(stack)
    assert notes(found["Queue"]) == {"ApproximateBacklogSizePerInstance target": 5}
    drawn = json.dumps(found)
    assert "TimeInBacklog" in drawn
    absent = (
        "OverheadLatency",
        '"Invocations"',
        "InvocationsPerInstance",
        "ConcurrentRequestsPerModel",
    )
    assert not [metric for metric in absent if metric in drawn]


def test_several_endpoints_in_one_dashboard(stack: cdk.Stack) -> None:
    """Each endpoint has a heading, and the dashboard has the given name."""
    endpoints: list[ITritonEndpoint] = [
        TritonEndpoint.from_endpoint_name(stack, name, name) for name in ("bert", "resnet")
    ]
    assert all(isinstance(endpoint, ITritonEndpoint) for endpoint in endpoints)

    dashboard = TritonDashboard(stack, "Dashboard", endpoints=endpoints, dashboard_name="serving")

    properties = only(synthesize(stack), "AWS::CloudWatch::Dashboard")
    assert properties["DashboardName"] == "serving"
    texts = [widget for widget in widgets_of(stack) if widget["type"] == "text"]
    assert [text["properties"]["markdown"] for text in texts] == ["## bert", "## resnet"]
    assert dashboard.dashboard.node.default_child is not None


def test_values_known_at_deployment(stack: cdk.Stack) -> None:
    """Names, bounds and targets may be parameters, and the body is JSON after deployment."""
    number = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
    name = cdk.CfnParameter(stack, "Name").value_as_string
    endpoint = TritonEndpoint.from_endpoint_name(stack, "E", name)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=number)
    count.scale_on_invocations_per_instance("Calls", target_invocations_per_minute=number)
    endpoint.add_dashboard()
    body = flat(only(synthesize(stack), "AWS::CloudWatch::Dashboard")["DashboardBody"])
    widgets = json.loads(body.replace("<Number>", "7"))["widgets"]
    found = {widget["properties"].get("title"): widget["properties"] for widget in widgets}
    assert notes(found["AllTraffic: instances"]) == {"min": 1, "max": 7}
    assert notes(found["Invocations"]) == {"InvocationsPerInstance target": 7}
    assert "<Name>" in found["Invocations"]["metrics"][0]


def test_dashboard_needs_an_endpoint(stack: cdk.Stack) -> None:
    """An empty list of endpoints raises an error."""
    with pytest.raises(
        InvalidValueError, match="endpoints: must have at least one endpoint; add one"
    ):
        TritonDashboard(stack, "Dashboard", endpoints=[])


def test_own_widgets_follow(stack: cdk.Stack) -> None:
    """Widgets that an app adds are below the graphs, as in every dashboard of the CDK."""
    dashboard = import_endpoint(stack).add_dashboard()
    dashboard.dashboard.add_widgets(
        cloudwatch.TextWidget(markdown="left", width=6, height=2),
        cloudwatch.TextWidget(markdown="right", width=6, height=2),
    )
    dashboard.dashboard.add_widgets(cloudwatch.TextWidget(markdown="below"))

    *library_widgets, left, right, below = widgets_of(stack)

    places = [
        (widget["x"], widget["y"], widget["width"], widget["height"]) for widget in library_widgets
    ]
    assert places == [
        (0, 0, 24, 1),
        (0, 1, 12, 6),
        (12, 1, 12, 6),
        (0, 7, 12, 6),
        (12, 7, 12, 6),
        (0, 13, 12, 6),
        (12, 13, 12, 6),
    ]
    end = 13 + 6
    assert (left["x"], left["y"]) == (0, end)
    assert (right["x"], right["y"]) == (6, end)
    assert (below["x"], below["y"]) == (0, end + 2)


def test_aspects_visit_the_dashboard(stack: cdk.Stack) -> None:
    """An aspect can change the resource of a dashboard."""
    dashboard = import_endpoint(stack).add_dashboard()
    cdk.Aspects.of(stack).add(_RenamesDashboards())
    found = only(synthesize(stack), "AWS::CloudWatch::Dashboard")
    assert found["DashboardName"] == "renamed"
    assert isinstance(dashboard.dashboard, cloudwatch.Dashboard)


@jsii.implements(cdk.IAspect)
class _RenamesDashboards:
    def visit(self, node: IConstruct) -> None:
        """Give a dashboard another name."""
        if isinstance(node, cloudwatch.CfnDashboard):
            node.dashboard_name = "renamed"


HERE = cdk.Environment(account="123456789012", region="eu-west-1")


def _imported(stack: cdk.Stack, kind: str, place: str) -> None:
    """Add a dashboard of an endpoint or a component in ``place``, a Region and an account."""
    arn = f"arn:aws:sagemaker:{place}"
    endpoint = TritonEndpoint.from_endpoint_attributes(
        stack, "Endpoint", endpoint_name="digits", endpoint_arn=f"{arn}:endpoint/digits"
    )
    if kind == "endpoint":
        TritonDashboard(stack, "Dashboard", endpoints=[endpoint])
        return
    host = TritonComponentEndpoint.from_endpoint_name(stack, "Host", "host")
    component = TritonInferenceComponent.from_inference_component_arn(
        stack, "Component", f"{arn}:inference-component/digits", endpoint=host
    )
    TritonComponentDashboard(stack, "Dashboard", components=[component])


@pytest.mark.parametrize("kind", ["endpoint", "component"])
@pytest.mark.parametrize(
    ("region", "account"),
    [("us-east-1", HERE.account), (HERE.region, "210987654321"), (HERE.region, HERE.account)],
)
def test_graphs_name_the_region_and_the_account_of_the_metrics(
    kind: str, region: str, account: str
) -> None:
    """Each graph of an endpoint or a component of elsewhere shows the metrics of there."""
    stack = cdk.Stack(cdk.App(), "Test", env=HERE)
    _imported(stack, kind, f"{region}:{account}")
    shown_region = "<AWS::Region>" if region == HERE.region else region
    shown_account = None if account == HERE.account else account
    for graph in graphs(stack).values():
        assert graph["region"] == shown_region
        metrics = [metric for metric in graph["metrics"] if len(metric) > 1]  # no expressions
        assert {metric[-1].get("accountId") for metric in metrics} == {shown_account}


def test_dashboard_without_an_environment_names_a_known_region() -> None:
    """A Region that an ARN says is in the graphs, because the stack's own may be another."""
    stack = cdk.Stack(cdk.App(), "Test")
    _imported(stack, "endpoint", "us-east-1:123456789012")
    assert {graph["region"] for graph in graphs(stack).values()} == {"us-east-1"}
