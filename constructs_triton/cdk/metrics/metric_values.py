"""CloudWatch metrics as values, which become objects of the CDK where the
CDK or a user needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.validation.read_once import duration_of
from constructs_triton.cdk.validation.same_environment import known_place


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """The properties of a metric of the CDK.

    ``period`` is in seconds, or the duration that a user gave.
    """

    namespace: str
    metric_name: str
    dimensions_map: Mapping[str, str]
    statistic: str
    unit: cloudwatch.Unit | None = None
    period: int | Duration = 60
    label: str | None = None
    color: str | None = None
    account: str | None = None
    region: str | None = None

    @property
    def dimensions(self) -> list[tuple[str, str]]:
        """The dimensions in the order in which the CDK writes them."""
        return sorted(self.dimensions_map.items())

    def of(self, resource: object) -> MetricValue:
        """Return the metric as the account and the Region of a resource have it.

        A dashboard in another Region would look for it there otherwise. An alarm in another Region
        is refused by the CDK.
        """
        account, region = known_place(resource)
        return replace(self, account=account, region=region)

    def to_cdk(self) -> cloudwatch.Metric:
        """Return the metric of the CDK."""
        return cloudwatch.Metric(**_properties(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionValue:
    """Metric math over metrics by their ids in the expression."""

    expression: str
    using_metrics: Mapping[str, Metric]
    label: str | None = None
    period: int | Duration = 60
    color: str | None = None

    def of(self, resource: object) -> ExpressionValue:
        """Return the metric math with the metrics of the account and the Region of a resource."""
        used = {name: metric.of(resource) for name, metric in self.using_metrics.items()}
        return replace(self, using_metrics=used)

    def to_cdk(self) -> cloudwatch.MathExpression:
        """Return the metric math of the CDK."""
        used = {name: each.to_cdk() for name, each in self.using_metrics.items()}
        return cloudwatch.MathExpression(**{**_properties(self), "using_metrics": used})


Metric = MetricValue | ExpressionValue


def _properties(metric: Metric) -> dict[str, Any]:
    """Return the properties of the CDK's metric, which has a ``Duration`` as its period."""
    properties = {field.name: getattr(metric, field.name) for field in fields(metric)}
    if isinstance(metric.period, int):
        properties["period"] = duration_of(metric.period)
    return properties


def converted(metric: MetricValue, id: str, factor: str, label: str | None) -> ExpressionValue:
    """Return a metric in another unit; ``factor`` is such as ``/ 1000``."""
    return ExpressionValue(
        expression=f"{id} {factor}",
        using_metrics={id: metric},
        period=metric.period,
        label=label,
        color=metric.color,
    )


def graph_metrics(left: Iterable[Metric], right: Iterable[Metric] = ()) -> list[list[Any]]:
    """Return the property ``metrics`` of a graph, whose lines differ;
    expressions may share a metric's id.
    """
    lines: list[list[Any]] = []
    known: set[str] = set()

    def add(metric: Metric, axis: str | None, id: str | None) -> None:
        if id is None or id not in known:
            known.update(() if id is None else (id,))
            lines.append(_line(metric, axis, id))
            for name, each in getattr(metric, "using_metrics", {}).items():
                add(each, None, name)

    for axis, metrics in (("left", left), ("right", right)):
        for metric in metrics:
            add(metric, axis, None)
    return lines


def _line(metric: Metric, axis: str | None, id: str | None) -> list[Any]:
    """Return a line with its options in the order of the CDK;
    one without an axis is only used by another.

    Options with the default value of CloudWatch are left out.
    """
    visible = None if axis else False
    y_axis = None if axis == "left" else axis
    period = None if metric.period == 300 else metric.period

    line: list[Any] = []
    options: dict[str, Any]
    if isinstance(metric, MetricValue):
        line += [metric.namespace, metric.metric_name]
        for dimension in metric.dimensions:
            line += dimension  # its name and its value
        options = {
            "color": metric.color,
            "label": metric.label,
            "id": id,
            "visible": visible,
            "period": period,
            "stat": None if metric.statistic == "Average" else metric.statistic,
            "yAxis": y_axis,
        }
    else:
        options = {
            "label": metric.label,
            "color": metric.color,
            "expression": metric.expression,
            "period": period,
            "visible": visible,
            "yAxis": y_axis,
            "id": id,
        }

    given = {name: value for name, value in options.items() if value is not None}
    if given:
        line.append(given)
    return line
