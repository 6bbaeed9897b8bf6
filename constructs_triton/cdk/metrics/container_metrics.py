"""The metrics that ``container_metrics=True`` publishes: Triton's own, by model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.metrics.metric_values import ExpressionValue, MetricValue
from constructs_triton.cdk.validation.arguments import (
    LOOKED_UP_LATER,
    check_known_string,
    check_period,
    check_string,
)
from constructs_triton.cdk.validation.read_once import duration_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.tokens import is_lookup_dummy

CONTAINER_NAMESPACE = "Triton"
_NAMES = (
    "Requests",
    "Failures",
    "Inferences",
    "Executions",
    "QueueTime",
    "ComputeTime",
    "Pending",
    "CacheHits",
    "CacheMisses",
)
_AVERAGES = {
    "queue": ("QueueTime", "Requests"),
    "compute": ("ComputeTime", "Requests"),
    "batch size": ("Inferences", "Executions"),
}
_INTERVAL = 60  # of the model that publishes


_Method = TypeVar("_Method", bound=Callable[..., cloudwatch.MathExpression])


def _of_model(method: _Method) -> _Method:
    """Add to a docstring what all averages of a model have in common."""
    method.__doc__ = f"""{method.__doc__}

        Args:
            model: Name of a model of the archive.
            period: Time over which values are aggregated. Default: one minute.

        Raises:
            InvalidValueError: the archive has no such model.
        """
    return method


@dataclass(frozen=True, slots=True)
class ContainerMetrics:
    """Triton's own metrics of one variant. Each belongs to one model, because an ensemble contains
    its steps.

    All instances of the variant publish into the same metrics. Times are in microseconds, as
    SageMaker's.

    Args:
        endpoint: The dimension ``Endpoint``: the endpoint's name, or its stack and path.
        variant: The dimension ``Variant``.
        models: The models of the archive, the one that answers requests first.
        queued_models: Those that have a queue of their own: all but ensembles, whose steps have it.
        custom: Names of the metrics that the models write themselves, the ``custom_metrics``.
    """

    endpoint: str
    variant: str
    models: tuple[str, ...]
    queued_models: tuple[str, ...]
    custom: tuple[str, ...] = ()

    @_of_model
    def queue_time(
        self, model: str, *, period: Duration | None = None
    ) -> cloudwatch.MathExpression:
        """Average time that a request waited in the queue of a model.

        Of an ensemble, read its steps.
        """
        return self._average("queue", model, period).to_cdk()

    @_of_model
    def compute_time(
        self, model: str, *, period: Duration | None = None
    ) -> cloudwatch.MathExpression:
        """Average time of a request in a model, without queue and copies of tensors."""
        return self._average("compute", model, period).to_cdk()

    @_of_model
    def batch_size(
        self, model: str, *, period: Duration | None = None
    ) -> cloudwatch.MathExpression:
        """Average size of the batches that a model ran, without hits of the response cache."""
        return self._average("batch size", model, period).to_cdk()

    def metric(
        self, name: str, model: str, *, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return a metric as it is published.

        Args:
            name: ``Requests``, ``Failures``, ``Inferences``, ``Executions``, ``QueueTime``,
                ``ComputeTime``, ``Pending``, ``CacheHits`` or ``CacheMisses``.
            model: Name of a model of the archive.
            statistic: CloudWatch's name; for ``Pending``, ``"Maximum"`` or ``"Average"``. Default:
                ``"Sum"``.
            period: Time over which values are aggregated. Default: one minute.

        Raises:
            InvalidValueError: the archive has no such model, or there is no such metric.
        """
        return self._metric(name, model, statistic=statistic, period=period).to_cdk()

    def _metric(
        self, name: str, model: str, *, statistic: str = "Sum", period: Duration | None = None
    ) -> MetricValue:
        """Return a metric that the publisher of Triton's metrics writes.

        Raises:
            InvalidValueError: there is no such metric or model.
        """
        model = self._found(model)
        if is_lookup_dummy(name):
            name = _NAMES[0]  # the next synthesis has the name
        check_known_string("name", name, _NAMES[0])
        check_string("statistic", statistic)
        check_period(period)
        if model not in self.models:
            hint = did_you_mean(model, self.models, f"its models are {quoted(self.models)}")
            raise InvalidValueError(f'model: must be a model of the archive, got "{model}"; {hint}')
        if name not in _NAMES:
            hint = did_you_mean(name, _NAMES, f"the metrics are {quoted(_NAMES)}")
            raise InvalidValueError(
                f'name: must be a metric that is published, got "{name}"; {hint}'
            )
        return MetricValue(
            namespace=CONTAINER_NAMESPACE,
            metric_name=name,
            dimensions_map={"Endpoint": self.endpoint, "Variant": self.variant, "Model": model},
            statistic=statistic,
            period=60 if period is None else period,
            label=f"{model}: {name}",
        )

    def custom_metric(
        self, name: str, *, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return a metric that a model writes itself, of all models and labels together.

        Args:
            name: One of ``custom_metrics``.
            statistic: CloudWatch's name: ``"Sum"`` of a counter is its growth; of a gauge read
                ``"Average"`` or ``"Maximum"``. Default: ``"Sum"``.
            period: Time over which values are aggregated. Default: one minute.

        Raises:
            InvalidValueError: the endpoint does not publish the metric.
        """
        if is_lookup_dummy(name) and self.custom:
            name = self.custom[0]  # the next synthesis has the name
        check_known_string("name", name, "rejected_requests")
        check_string("statistic", statistic)
        check_period(period)
        if name not in self.custom:
            published = f"those are {quoted(self.custom)}" if self.custom else "there are none"
            hint = did_you_mean(name, self.custom, f"{published}; add it there")
            raise InvalidValueError(f'name: must be one of custom_metrics, got "{name}"; {hint}')
        return MetricValue(
            namespace=CONTAINER_NAMESPACE,
            metric_name=name,
            dimensions_map={"Endpoint": self.endpoint, "Variant": self.variant},
            statistic=statistic,
            period=60 if period is None else period,
            label=name,
        ).to_cdk()

    def reporting_instances(self, *, period: Duration | None = None) -> cloudwatch.MathExpression:
        """Number of instances that publish, also without requests. A deployment doubles it for a
        while.

        Args:
            period: Time over which values are aggregated. Default: 5 minutes.
        """
        check_period(period)
        period = duration_of(300) if period is None else period
        published = self._metric("Requests", self.models[0], statistic="SampleCount", period=period)
        return ExpressionValue(
            expression=f"published * {_INTERVAL} / {period.to_seconds():g}",
            using_metrics={"published": published},
            label="reporting instances",
            period=published.period,
        ).to_cdk()

    def _found(self, model: str) -> str:
        """Return the name of a model; for the stand-in of a lookup, that of any model."""
        if is_lookup_dummy(model) or LOOKED_UP_LATER in self.models:
            return self.models[0]
        check_known_string("model", model, self.models[0])
        return model

    def _average(self, what: str, model: str, period: Duration | None = None) -> ExpressionValue:
        """Return the mean of a figure, such as the queue time, over the requests of a period."""
        model = self._found(model)
        numerator, denominator = _AVERAGES[what]
        # A quotient of sums weighs each request alike; an average of quotients would not. The ids
        # are unique, so that one graph can show several models.
        divided, by = (
            self._metric(name, model, period=period) for name in (numerator, denominator)
        )
        position = self.models.index(model)
        total, number = f"{numerator.lower()}{position}", f"{denominator.lower()}{position}"
        return ExpressionValue(
            expression=f"IF({number} > 0, {total} / {number}, 0)",
            using_metrics={total: divided, number: by},
            label=f"{model}: {what}",
            period=divided.period,
        )
