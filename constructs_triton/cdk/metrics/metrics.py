"""CloudWatch metrics of an endpoint's variants, each in the namespace SageMaker publishes it to."""

from __future__ import annotations

import re
from typing import TypedDict, Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.metrics.metric_definitions import (
    INSTANCE_NAMESPACE,
    INVOCATION_NAMESPACE,
    metric_definition,
)
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton.errors import InvalidValueError

__all__ = [
    "INSTANCE_NAMESPACE",
    "INVOCATION_NAMESPACE",
    "MetricOptions",
    "VariantMetrics",
    "instance_count_metric",
    "variant_metric",
]

_PERIOD_SECONDS = 60  # SageMaker publishes once a minute
_MICROSECONDS_IN = {"MICROSECONDS": 1, "MILLISECONDS": 1_000, "SECONDS": 1_000_000}


class MetricOptions(TypedDict, total=False):
    """What every ``metric`` method takes.

    ``statistic``
        CloudWatch's name: ``"Average"``, ``"Sum"``, ``"p99"``. By default the one that makes sense of the
        metric.
    ``period``
        A minute by default, which is how often SageMaker publishes.
    ``label``, ``color``
        How a graph shows it.
    """

    statistic: str | None
    period: Duration | None
    label: str | None
    color: str | None


def variant_metric(
    metric_name: str, *, endpoint_name: str, variant_name: str, **options: Unpack[MetricOptions]
) -> cloudwatch.Metric:
    """A metric of one variant, by ``EndpointName`` and ``VariantName``; of its queue by the first alone."""
    definition = metric_definition(metric_name)
    dimensions = {"EndpointName": endpoint_name}
    if definition.has_variant_dimension:
        dimensions["VariantName"] = variant_name
    statistic, period = options.get("statistic"), options.get("period")
    return cloudwatch.Metric(
        namespace=definition.namespace,
        metric_name=metric_name,
        dimensions_map=dimensions,
        statistic=definition.statistic if statistic is None else statistic,
        unit=definition.unit,
        period=Duration.seconds(_PERIOD_SECONDS) if period is None else period,
        label=options.get("label"),
        color=options.get("color"),
    )


def instance_count_metric(
    *,
    endpoint_name: str,
    variant_name: str,
    from_queue: bool = False,
    id_suffix: str = "",
    period: Duration | None = None,
    label: str = "InstanceCount",
) -> cloudwatch.MathExpression:
    """The instances of a variant, which SageMaker publishes only as a quotient.

    Each invocation adds 1 to ``Invocations`` and 1/instances to ``InvocationsPerInstance``; for asynchronous
    endpoints (``from_queue``) the backlog is published in the same two ways. There is no value for a minute
    without invocations. ``id_suffix`` keeps two of them apart in one graph.
    """
    total, share = "Invocations", "InvocationsPerInstance"
    if from_queue:
        total, share = "ApproximateBacklogSize", "ApproximateBacklogSizePerInstance"
    names = {f"total{id_suffix}": total, f"share{id_suffix}": share}
    return cloudwatch.MathExpression(
        # Rounded, because a third summed up three times is not one.
        expression=f"FLOOR(total{id_suffix} / share{id_suffix} + 0.5)",
        using_metrics={
            part: variant_metric(name, endpoint_name=endpoint_name, variant_name=variant_name, period=period)
            for part, name in names.items()
        },
        period=Duration.seconds(_PERIOD_SECONDS) if period is None else period,
        label=label,
    )


class VariantMetrics:
    """The ``metric`` methods of a variant, and of an endpoint for its only variant.

    Every method takes ``statistic``, ``period``, ``label`` and ``color``.
    """

    def _metric_endpoint_name(self) -> str:
        raise NotImplementedError

    def _metric_variant_name(self) -> str:
        raise NotImplementedError

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Any metric SageMaker publishes, in its own namespace, with the dimensions it is published under."""
        # A queue belongs to the endpoint, whichever and however many its variants are.
        has_variant = metric_definition(metric_name).has_variant_dimension
        return variant_metric(
            metric_name,
            endpoint_name=self._metric_endpoint_name(),
            variant_name=self._metric_variant_name() if has_variant else "",
            **options,
        )

    # Traffic and errors.

    def metric_invocations(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of invocations, summed over ``period``; asynchronous endpoints do not publish it."""
        return self.metric("Invocations", **options)

    def metric_invocations_per_instance(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of invocations of each instance, summed over ``period``; not for asynchronous endpoints."""
        return self.metric("InvocationsPerInstance", **options)

    def metric_concurrent_requests_per_model(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Most requests under way at once in a model, the queued ones included; published every 10 s."""
        return self.metric("ConcurrentRequestsPerModel", **options)

    def metric_invocation_4xx_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of answers with a status of 400 to 499; their share of all, 0 to 1, as ``"Average"``."""
        return self.metric("Invocation4XXErrors", **options)

    def metric_invocation_5xx_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of answers with a status of 500 or more; their share of all, 0 to 1, as ``"Average"``."""
        return self.metric("Invocation5XXErrors", **options)

    def metric_invocation_model_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of requests the container did not answer with 2xx; as ``"Average"``, a share from 0 to 1."""
        return self.metric("InvocationModelErrors", **options)

    def metric_mid_stream_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of response streams that broke off after they had begun."""
        return self.metric("MidStreamErrors", **options)

    # Time.

    def metric_model_latency(
        self, *, unit: cloudwatch.Unit | None = None, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric | cloudwatch.MathExpression:
        """Time the container took to answer, in **microseconds**, the 99th percentile by default.

        With ``unit=Unit.MILLISECONDS`` or ``Unit.SECONDS`` metric math converts it.
        """
        return _in_unit(self.metric("ModelLatency", **_or_p99(options)), unit)

    def metric_overhead_latency(
        self, *, unit: cloudwatch.Unit | None = None, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric | cloudwatch.MathExpression:
        """Time SageMaker itself added, in **microseconds**; otherwise as :meth:`metric_model_latency`."""
        return _in_unit(self.metric("OverheadLatency", **_or_p99(options)), unit)

    def metric_first_chunk_latency(
        self, *, unit: cloudwatch.Unit | None = None, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric | cloudwatch.MathExpression:
        """Time to the first chunk of a response stream, in **microseconds**; see ``metric_model_latency``."""
        return _in_unit(self.metric("FirstChunkLatency", **_or_p99(options)), unit)

    # Instances.

    def metric_cpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """CPU utilisation in percent, from 0 to 100 **times** the number of vCPUs of an instance."""
        return self.metric("CPUUtilization", **options)

    def metric_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Main memory used by the containers, in percent from 0 to 100."""
        return self.metric("MemoryUtilization", **options)

    def metric_disk_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Disk space used by the containers, in percent from 0 to 100."""
        return self.metric("DiskUtilization", **options)

    def metric_gpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """GPU utilisation in percent, from 0 to 100 **times** the number of GPUs of an instance."""
        return self.metric("GPUUtilization", **options)

    def metric_gpu_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """GPU memory used, in percent, from 0 to 100 **times** the number of GPUs of an instance."""
        return self.metric("GPUMemoryUtilization", **options)

    def metric_instance_count(
        self, *, from_queue: bool = False, period: Duration | None = None
    ) -> cloudwatch.MathExpression:
        """The number of instances, from invocations in all and of each; no value while there are none.

        With ``from_queue`` from the backlog of an asynchronous endpoint.
        """
        names = {
            "endpoint_name": self._metric_endpoint_name(),
            "variant_name": self._metric_variant_name(),
        }
        return instance_count_metric(**names, from_queue=from_queue, period=period)

    # Multi-model endpoints. There is no metric of a single model.

    def metric_loaded_model_count(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Models loaded in the containers of each instance; as ``"Sum"``, of all instances."""
        return self.metric("LoadedModelCount", **options)

    def metric_model_cache_hit(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Share of the requests whose model was loaded already, from 0 to 1."""
        return self.metric("ModelCacheHit", **options)

    def metric_model_loading_wait_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time a request waited for its model to be downloaded and loaded, in **microseconds**."""
        return self.metric("ModelLoadingWaitTime", **options)

    def metric_model_downloading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time to bring a model from S3, in **microseconds**."""
        return self.metric("ModelDownloadingTime", **options)

    def metric_model_loading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time Triton took to load a model, in **microseconds**."""
        return self.metric("ModelLoadingTime", **options)

    def metric_model_unloading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time Triton took to unload a model, in **microseconds**."""
        return self.metric("ModelUnloadingTime", **options)

    # Asynchronous endpoints: the queue, which the variants share, and what became of the requests.

    def metric_approximate_backlog_size(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Requests in the queue or in processing, of the whole endpoint."""
        return self.metric("ApproximateBacklogSize", **options)

    def metric_approximate_backlog_size_per_instance(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Requests in the queue or in processing, divided by the endpoint's instances."""
        return self.metric("ApproximateBacklogSizePerInstance", **options)

    def metric_approximate_age_of_oldest_request(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Age of the oldest request in the queue, in **seconds**."""
        return self.metric("ApproximateAgeOfOldestRequest", **options)

    def metric_has_backlog_without_capacity(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """1 while requests wait and no instance runs, otherwise 0."""
        return self.metric("HasBacklogWithoutCapacity", **options)

    def metric_time_in_backlog(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time a request was in the queue before its processing began, in **microseconds**."""
        return self.metric("TimeInBacklog", **options)

    def metric_invocation_failures(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of asynchronous invocations that failed, for whatever reason."""
        return self.metric("InvocationFailures", **options)

    def metric_expired_requests(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of queued requests that outlived their time to live."""
        return self.metric("ExpiredRequests", **options)


def _or_p99(options: MetricOptions) -> MetricOptions:
    return options if options.get("statistic") is not None else {**options, "statistic": "p99"}


def _in_unit(
    metric: cloudwatch.Metric, unit: cloudwatch.Unit | None
) -> cloudwatch.Metric | cloudwatch.MathExpression:
    check_type("unit", unit, (cloudwatch.Unit, "Unit.MILLISECONDS"))
    if unit is None or unit is cloudwatch.Unit.MICROSECONDS:
        return metric
    if unit.name not in _MICROSECONDS_IN:
        raise InvalidValueError(
            f"unit: must be MICROSECONDS, MILLISECONDS or SECONDS, got {unit.name}; choose one of them"
        )
    name = re.sub(r"\W", "_", f"m_{metric.metric_name}_{metric.statistic}")
    return cloudwatch.MathExpression(
        expression=f"{name} / {_MICROSECONDS_IN[unit.name]}",
        using_metrics={name: metric},
        period=metric.period,
        label=f"{metric.metric_name} ({unit.name.lower()})" if metric.label is None else metric.label,
        color=metric.color,
    )
