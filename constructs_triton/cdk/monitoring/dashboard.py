"""A dashboard of one or several endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.monitoring import dashboard_widgets as widgets
from constructs_triton.cdk.monitoring.endpoint_interface import ITritonEndpoint
from constructs_triton.cdk.validation.property_types import check_has, check_type
from constructs_triton.errors import InvalidValueError

__all__ = ["TritonDashboard"]


class TritonDashboard(Construct):
    """What an operator asks of endpoints: traffic, latency, errors, utilisation, instances, model loading.

    ``endpoints``
        Any Triton endpoints, made here or imported. Scale them first: the graphs show the targets and bounds
        of scaling that are there when the dashboard is made.
    ``dashboard_name``
        By default CloudFormation makes one up.
    ``model_latency_objective``
        Drawn into the graphs of latency.
    ``default_interval``
        The time that is shown at first: 3 hours by default.

    Latencies are in milliseconds, and utilisations from 0 to 100 percent of one GPU or vCPU, whatever the
    instance type.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoints: Sequence[ITritonEndpoint],
        dashboard_name: str | None = None,
        model_latency_objective: Duration | None = None,
        default_interval: Duration | None = None,
    ) -> None:
        if not endpoints:
            raise InvalidValueError("endpoints: a dashboard shows at least one, got none; give it one")
        if hasattr(endpoints, "endpoint_name"):
            raise InvalidValueError(f"endpoints: must be a list, got {endpoints!r}; write [endpoint]")
        for endpoint in endpoints:
            check_has("endpoints", endpoint, "endpoint_name", "TritonEndpoint.from_endpoint_name(...)")
        check_type("model_latency_objective", model_latency_objective, (Duration, "Duration.millis(300)"))
        super().__init__(scope, id)
        objective = model_latency_objective
        self._dashboard = cloudwatch.Dashboard(
            self,
            "Resource",
            dashboard_name=dashboard_name,
            default_interval=Duration.hours(3) if default_interval is None else default_interval,
        )
        for endpoint in endpoints:
            for row in _rows(endpoint, None if objective is None else objective.to_milliseconds()):
                self._dashboard.add_widgets(*row)

    @property
    def dashboard(self) -> cloudwatch.Dashboard:
        """CDK's dashboard, to add widgets of your own to."""
        return self._dashboard


def _rows(endpoint: ITritonEndpoint, objective_ms: float | None) -> Iterator[list[cloudwatch.IWidget]]:
    yield [cloudwatch.TextWidget(markdown=f"## {endpoint.endpoint_name}", width=24, height=1)]
    if endpoint.is_asynchronous:
        yield from widgets.asynchronous_rows(endpoint, objective_ms)
    else:
        yield from widgets.real_time_rows(endpoint, objective_ms)
    if endpoint.is_multi_model:
        yield widgets.multi_model_row(endpoint)
    for variant in endpoint.variants:
        yield widgets.variant_row(endpoint, variant)
