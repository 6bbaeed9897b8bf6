"""CloudWatch metrics as values, which become objects of the CDK where the CDK or a user needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.validation.durations import duration_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """A metric. ``period`` is in seconds, or the duration that a user gave."""

    namespace: str
    metric_name: str
    dimensions: Mapping[str, str]
    statistic: str
    unit: cloudwatch.Unit | None = None
    period: int | Duration = 60
    label: str | None = None
    color: str | None = None

    @property
    def sorted_dimensions(self) -> list[tuple[str, str]]:
        """The dimensions in the order in which the CDK writes them."""
        return sorted(self.dimensions.items())

    def to_cdk(self) -> cloudwatch.Metric:
        """Return the metric of the CDK."""
        return cloudwatch.Metric(
            namespace=self.namespace,
            metric_name=self.metric_name,
            dimensions_map=self.dimensions,
            statistic=self.statistic,
            unit=self.unit,
            period=_duration(self.period),
            label=self.label,
            color=self.color,
        )

    def identity(self) -> Any:
        """Return what is equal for equal metrics, whatever their statistics."""
        return [self.namespace, self.metric_name, self.dimensions]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionValue:
    """Metric math over metrics by their ids in the expression."""

    expression: str
    metrics: Mapping[str, Metric]
    label: str | None = None
    period: int | Duration = 60
    color: str | None = None

    def to_cdk(self) -> cloudwatch.MathExpression:
        """Return the metric math of the CDK."""
        return cloudwatch.MathExpression(
            expression=self.expression,
            using_metrics={name: each.to_cdk() for name, each in self.metrics.items()},
            period=_duration(self.period),
            label=self.label,
            color=self.color,
        )

    def identity(self) -> Any:
        """Return what is equal for equal metrics, whatever their statistics."""
        return [self.expression, {name: each.identity() for name, each in self.metrics.items()}]


Metric = MetricValue | ExpressionValue


def _duration(period: int | Duration) -> Duration:
    return duration_of(period) if isinstance(period, int) else period


def converted(metric: MetricValue, id: str, factor: str, label: str | None) -> ExpressionValue:
    """Return a metric in another unit; ``factor`` is such as ``/ 1000``."""
    return ExpressionValue(
        expression=f"{id} {factor}",
        metrics={id: metric},
        period=metric.period,
        label=label,
        color=metric.color,
    )


@dataclass(slots=True)
class _Line:
    """A metric of a graph; one without an axis is only used by an expression."""

    metric: Metric
    axis: str | None
    id: str | None

    def render(self) -> list[Any]:
        """Return the line with its options in the order in which the CDK writes them."""
        metric, place = self.metric, list[str]()
        looks = {"id": self.id, "visible": None if self.axis else False}
        axis = {"yAxis": None if self.axis == "left" else self.axis}
        period = {"period": None if metric.period == 300 else metric.period}
        if isinstance(metric, MetricValue):
            dimensions = (part for each in metric.sorted_dimensions for part in each)
            place = [metric.namespace, metric.metric_name, *dimensions]
            statistic = None if metric.statistic == "Average" else metric.statistic
            options = {"color": metric.color, "label": metric.label, **looks, **period, "stat": statistic}
        else:
            options = {
                "label": metric.label,
                "color": metric.color,
                "expression": metric.expression,
                **period,
            }
            looks = {"visible": looks["visible"], **axis, "id": self.id}
        given = {name: each for name, each in {**options, **looks, **axis}.items() if each is not None}
        return [*place, given] if given else place


@dataclass(slots=True)
class _Lines:
    """The lines of a graph, each metric once, as the CDK's graphs show them."""

    lines: list[_Line] = field(default_factory=list)
    _by_key: dict[str, _Line] = field(default_factory=dict)

    def add(self, metric: Metric, axis: str | None, id: str | None = None) -> None:
        key = repr(_without_looks(metric))
        known = next((each for each in self.lines if id is not None and each.id == id), None)
        known = known or self._by_key.get(key)
        if known is None or (None not in (id, known.id) and known.id != id):
            known = self._by_key[key] = _Line(metric, None, None)
            self.lines.append(known)
        known.id, known.axis = known.id or id, known.axis or axis
        if isinstance(metric, ExpressionValue):
            for name, each in metric.metrics.items():
                self.add(each, None, name)


def _without_looks(metric: Metric) -> Any:
    looks = (metric.statistic, metric.period) if isinstance(metric, MetricValue) else ()
    return [metric.identity(), *looks, *(map(_without_looks, getattr(metric, "metrics", {}).values()))]


def graph_metrics(left: Iterable[Metric], right: Iterable[Metric] = ()) -> list[list[Any]]:
    """Return the property ``metrics`` of a graph."""
    lines = _Lines()
    for axis, metrics in (("left", left), ("right", right)):
        for metric in metrics:
            lines.add(metric, axis)
    return [each.render() for each in lines.lines]
