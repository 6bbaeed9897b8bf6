"""The graphs of ``TritonDashboard``: each function creates one for an endpoint or a variant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Unpack

from aws_cdk import Aws

from constructs_triton.cdk.metrics.metric_definitions import MetricOptions
from constructs_triton.cdk.metrics.metric_values import (
    Metric,
    MetricValue,
    converted,
    graph_metrics,
)
from constructs_triton.cdk.metrics.metrics import instance_count_metric, variant_metric
from constructs_triton.cdk.monitoring.interfaces import ITritonEndpoint
from constructs_triton.cdk.monitoring.monitored_endpoint import metric_units
from constructs_triton.cdk.scaling.checks import TrackedMetric
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant
from constructs_triton.cdk.scaling.scalable_capacity import ScalableCapacity
from constructs_triton.cdk.scaling.scalable_instance_count import tracked_metrics

GRID_WIDTH = 24
_WIDTH = 12  # two graphs in a row
_HEIGHT = 6
_Metrics = Sequence[Metric]
_Note = dict[str, Any]
Widget = dict[str, Any]
"""A widget as CloudWatch has it in JSON, without its place."""
_Row = list[Widget]


def real_time_rows(endpoint: ITritonEndpoint, objective_ms: float | None) -> Iterator[_Row]:
    """Traffic, latency, errors and concurrency of a real-time endpoint."""
    yield [
        _traffic(endpoint),
        _latency(endpoint, ("ModelLatency", "OverheadLatency"), objective_ms),
    ]
    errors = ("Invocation4XXErrors", "Invocation5XXErrors", "InvocationModelErrors")
    yield [graph("Errors", _of_variants(endpoint, errors), "per minute"), _concurrency(endpoint)]


def asynchronous_rows(endpoint: ITritonEndpoint, objective_ms: float | None) -> Iterator[_Row]:
    """Queue, latency, errors and oldest request of an asynchronous endpoint."""
    yield [_backlog(endpoint), _latency(endpoint, ("ModelLatency", "TimeInBacklog"), objective_ms)]
    errors = ("Invocation4XXErrors", "Invocation5XXErrors", "InvocationFailures", "ExpiredRequests")
    yield [graph("Errors", _of_variants(endpoint, errors), "per minute"), _oldest_request(endpoint)]


def variant_row(endpoint: ITritonEndpoint, variant: EndpointVariant) -> _Row:
    """Utilization from 0 to 100 percent and instances of one variant."""
    return [_utilization(endpoint, variant), _instances(endpoint, variant)]


def instance_type_row(endpoint: ITritonEndpoint, variant: EndpointVariant) -> _Row:
    """Latency, invocations and utilization of each instance type of a variant with several."""
    types = variant.instance_types
    latency = _by_type(endpoint, variant, "ModelLatency", [1000 for _ in types])
    calls: list[Metric] = []
    if not endpoint.is_asynchronous:
        calls = _by_type(endpoint, variant, "Invocations", [1 for _ in types])

    # CloudWatch adds up the utilization of all GPUs, or of all vCPUs.
    if types[0].gpus != 0:
        used = "GPUUtilization"
        divisors = [instance_type.gpus or 1 for instance_type in types]
    else:
        used = "CPUUtilization"
        divisors = [instance_type.vcpus or 1 for instance_type in types]
    utilization = _by_type(endpoint, variant, used, divisors)

    title = f"{variant.variant_name}: {{}} by instance type"
    return [
        graph(
            title.format("latency and calls"), latency, "ms", right=calls, right_label="per minute"
        ),
        graph(title.format(used), utilization, "%"),
    ]


def _by_type(
    endpoint: ITritonEndpoint, variant: EndpointVariant, name: str, divisors: Sequence[float]
) -> list[Metric]:
    """One metric of each instance type, divided by a number of its own."""
    lines: list[Metric] = []
    for instance_type, divisor in zip(variant.instance_types, divisors, strict=True):
        type_name = instance_type.name
        metric = _metric(endpoint, variant, name, instance_type=type_name, label=type_name)
        if divisor == 1:
            lines.append(metric)
        else:
            metric_id = f"m{len(lines)}"
            lines.append(converted(metric, metric_id, f"/ {divisor:g}", metric.label))
    return lines


def container_row(variant: EndpointVariant) -> _Row:
    """Time that requests wait and are computed in each model,
    and the batches and failures of each.
    """
    metrics = variant.container_metrics
    times = []
    for model in metrics.models:
        for time in ("queue", "compute"):
            average = metrics._average(time, model)
            # Triton counts microseconds.
            times.append(replace(average, expression=f"({average.expression}) / 1000"))

    sizes = [metrics._average("batch size", model) for model in metrics.models]
    failures = [metrics._metric("Failures", model) for model in metrics.models]
    title = f"{variant.variant_name}: {{}} by model"
    return [
        graph(title.format("queue and compute time"), times, "ms"),
        graph(
            title.format("batches and failures"),
            sizes,
            "batch size",
            right=failures,
            right_label="failures",
        ),
    ]


def multi_model_row(endpoint: ITritonEndpoint) -> _Row:
    """Loaded models, cache hits and loading times of a multi-model endpoint."""
    loaded = _of_variants(endpoint, ("LoadedModelCount",))
    hits = _scaled(endpoint, [("ModelCacheHit", "Average")], factor="* 100")
    times = [
        ("ModelLoadingWaitTime", "Average"),
        ("ModelDownloadingTime", "Average"),
        ("ModelLoadingTime", "Average"),
        ("ModelUnloadingTime", "Average"),
    ]
    waits = _scaled(endpoint, times, factor="/ 1000")
    return [
        graph(
            "Loaded models and cache hits",
            loaded,
            "models",
            right=hits,
            right_label="% of requests",
        ),
        graph("Model loading", waits, "ms"),
    ]


def _traffic(endpoint: ITritonEndpoint) -> Widget:
    return graph(
        "Invocations",
        _of_variants(endpoint, ("Invocations",)),
        "per minute",
        right=_of_variants(endpoint, ("InvocationsPerInstance",)),
        right_label="per minute and instance",
        right_notes=_targets(endpoint, ("InvocationsPerInstance",)),
    )


def _latency(
    endpoint: ITritonEndpoint, names: tuple[str, str], objective_ms: float | None
) -> Widget:
    container, other = names
    wanted = [(container, statistic) for statistic in ("p50", "p90", "p99")]
    wanted += [(other, statistic) for statistic in ("p50", "p99")]
    notes = _targets(endpoint, (container,), divisor=1000)
    if objective_ms is not None:
        notes.append({"value": objective_ms, "label": "objective"})
    metrics = _scaled(endpoint, wanted, factor="/ 1000")
    return graph("Latency", metrics, "ms", notes=notes)


def _concurrency(endpoint: ITritonEndpoint) -> Widget:
    names = ("ConcurrentRequestsPerModel",)
    return graph(
        "Concurrent requests",
        _of_variants(endpoint, names),
        "requests",
        notes=_targets(endpoint, names),
    )


def _backlog(endpoint: ITritonEndpoint) -> Widget:
    return graph(
        "Queue",
        [_metric(endpoint, endpoint.variants[0], "ApproximateBacklogSize")],
        "requests",
        right=[_metric(endpoint, endpoint.variants[0], "ApproximateBacklogSizePerInstance")],
        right_label="requests per instance",
        right_notes=_targets(endpoint, ("ApproximateBacklogSizePerInstance",)),
    )


def _oldest_request(endpoint: ITritonEndpoint) -> Widget:
    """Draw how long the oldest request of an asynchronous endpoint has waited."""
    oldest = _metric(endpoint, endpoint.variants[0], "ApproximateAgeOfOldestRequest")
    waiting = _metric(endpoint, endpoint.variants[0], "HasBacklogWithoutCapacity")
    return graph("Oldest request", [oldest], "seconds", right=[waiting], right_label="0 or 1")


def _utilization(endpoint: ITritonEndpoint, variant: EndpointVariant) -> Widget:
    """Each utilization divided by the number of vCPUs or GPUs, so the range is 0 to 100.

    If the number is unknown, the metric is shown unchanged and the axis has no maximum.
    """
    names: tuple[str, ...] = (
        "GPUUtilization",
        "GPUMemoryUtilization",
        "CPUUtilization",
        "MemoryUtilization",
        "DiskUtilization",
    )
    if variant.instance_type.gpus == 0:
        names = names[2:]
    lines: list[Metric] = []
    for position, name in enumerate(names):
        metric = _metric(endpoint, variant, name)
        units = metric_units(variant, name)
        if units is None or units == 1:
            lines.append(metric)
        else:
            lines.append(converted(metric, f"m{position}", f"/ {units:g}", name))

    is_bounded = all(metric_units(variant, name) for name in names)
    notes = [_note(tracked, tracked.units) for tracked in _tracked(variant, names)]
    title = f"{variant.variant_name}: utilization"
    return graph(title, lines, "%", notes=notes, max=100 if is_bounded else None)


def _instances(endpoint: ITritonEndpoint, variant: EndpointVariant) -> Widget:
    count = instance_count_metric(
        endpoint_name=endpoint.endpoint_name,
        variant_name=variant.variant_name,
        from_queue=bool(endpoint.is_asynchronous),
    )
    notes = bounds(variant.scalable_instance_count)
    return graph(f"{variant.variant_name}: instances", [count], "instances", notes=notes)


def bounds(scalable: ScalableCapacity | None) -> list[_Note]:
    """The lines of a minimum and a maximum."""
    if scalable is None:
        return []
    return [
        {"value": scalable.min_capacity, "label": "min"},
        {"value": scalable.max_capacity, "label": "max"},
    ]


def graph(
    title: str,
    left: _Metrics,
    label: str,
    *,
    notes: Sequence[_Note] = (),
    right: _Metrics = (),
    right_label: str | None = None,
    right_notes: Sequence[_Note] = (),
    max: float | None = None,
) -> Widget:
    """A graph that begins at zero."""
    properties: dict[str, Any] = {
        "view": "timeSeries",
        "title": title,
        "region": _region(),
        "metrics": graph_metrics(left, right),
    }
    lines = [{**note, "yAxis": "left"} for note in notes]
    lines += [{**note, "yAxis": "right"} for note in right_notes]
    if lines:
        properties["annotations"] = {"horizontal": lines}

    properties["yAxis"] = {"left": _axis(label, max)}
    if right:
        properties["yAxis"]["right"] = _axis(right_label)
    return {
        "type": "metric",
        "width": _WIDTH,
        "height": _HEIGHT,
        "x": 0,
        "y": 0,
        "properties": properties,
    }


@cache
def _region() -> str:
    return Aws.REGION  # a call to the CDK, and the same for all graphs


def placed(row: _Row, *, region: str | None, account: str | None) -> _Row:
    """Return the graphs of a row with the Region and the account of their metrics.

    Without them, CloudWatch shows the metrics of the Region and the account of the dashboard
    (CloudWatch API reference, "Dashboard body structure and syntax").
    """
    widgets = []
    for widget in row:
        is_graph = widget["type"] == "metric"
        widgets.append(_placed(widget, region, account) if is_graph else widget)
    return widgets


def _placed(widget: Widget, region: str | None, account: str | None) -> Widget:
    properties = dict(widget["properties"])
    if region is not None:
        properties["region"] = region
    if account is not None:
        properties["metrics"] = [_line_of_account(line, account) for line in properties["metrics"]]
    return {**widget, "properties": properties}


def _line_of_account(line: list[Any], account: str) -> list[Any]:
    """A line of a graph with the account of its metric; an expression has none of its own."""
    *names, options = line
    if not names:
        return line
    if not isinstance(options, dict):
        return [*line, {"accountId": account}]
    return [*names, {**options, "accountId": account}]


def title_row(text: str) -> _Row:
    """A heading over the whole width."""
    properties = {"markdown": f"## {text}"}
    return [
        {"type": "text", "width": GRID_WIDTH, "height": 1, "x": 0, "y": 0, "properties": properties}
    ]


def _axis(label: str | None, max: float | None = None) -> dict[str, Any]:
    axis = {"label": label, "max": max, "min": 0, "showUnits": False}
    return {name: value for name, value in axis.items() if value is not None}


def _metric(
    endpoint: ITritonEndpoint, variant: EndpointVariant, name: str, **options: Unpack[MetricOptions]
) -> MetricValue:
    names = {"endpoint_name": endpoint.endpoint_name, "variant_name": variant.variant_name}
    options.setdefault("label", name)
    return variant_metric(name, **names, **options)


def _of_variants(endpoint: ITritonEndpoint, names: Iterable[str]) -> list[Metric]:
    """Return the metrics of these names of each variant."""
    metrics: list[Metric] = []
    for variant in endpoint.variants:
        for name in names:
            label = _label(endpoint, variant, name)
            metrics.append(_metric(endpoint, variant, name, label=label))
    return metrics


def _scaled(
    endpoint: ITritonEndpoint, wanted: Sequence[tuple[str, str]], *, factor: str
) -> list[Metric]:
    """Each metric of each variant, converted to another unit. Ids are unique within a graph."""
    lines: list[Metric] = []
    for variant in endpoint.variants:
        for name, statistic in wanted:
            metric = _metric(endpoint, variant, name, statistic=statistic)
            text = name if statistic == "Average" else f"{name} {statistic}"
            metric_id = f"m{len(lines)}"
            lines.append(converted(metric, metric_id, factor, _label(endpoint, variant, text)))
    return lines


def _label(endpoint: ITritonEndpoint, variant: EndpointVariant, text: str) -> str:
    return text if len(endpoint.variants) == 1 else f"{variant.variant_name} {text}"


def _tracked(variant: EndpointVariant, names: Iterable[str]) -> list[TrackedMetric]:
    wanted = set(names)
    found = tracked_metrics(variant.scalable_instance_count)
    return [tracked for tracked in found if tracked.metric_name in wanted]


def _targets(endpoint: ITritonEndpoint, names: Iterable[str], divisor: float = 1) -> list[_Note]:
    notes = []
    for variant in endpoint.variants:
        for tracked in _tracked(variant, names):
            label = _label(endpoint, variant, f"{tracked.metric_name} target")
            notes.append(_note(tracked, divisor, label))
    return notes


def _note(tracked: TrackedMetric, divisor: float, label: str | None = None) -> _Note:
    # A target that is a token has a divisor of 1, because it could not be multiplied.
    value = tracked.target_value if divisor == 1 else tracked.target_value / divisor
    return {"value": value, "label": label or f"{tracked.metric_name} target"}
