"""CloudWatch metrics of the variants of an endpoint."""

from __future__ import annotations

import re
from typing import Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.metrics.metric_definitions import (
    MetricOptions,
    metric_definition,
    number_metric,
    or_p99,
    published_metric,
)
from constructs_triton.cdk.metrics.metric_values import ExpressionValue, MetricValue, converted
from constructs_triton.cdk.validation.arguments import check_flag
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token

_MICROSECONDS_IN = {"MICROSECONDS": 1, "MILLISECONDS": 1_000, "SECONDS": 1_000_000}


def variant_metric(
    metric_name: str, *, endpoint_name: str, variant_name: str, **options: Unpack[MetricOptions]
) -> MetricValue:
    """Return a metric of one variant, or of the endpoint's queue, which has no ``VariantName``."""
    dimensions = {"EndpointName": endpoint_name}
    if metric_definition(metric_name).has_variant_dimension:
        dimensions["VariantName"] = variant_name
    return published_metric(metric_name, dimensions, options)


def instance_count_metric(
    *,
    endpoint_name: str,
    variant_name: str,
    from_queue: bool = False,
    period: Duration | None = None,
) -> ExpressionValue:
    """Return metric math for the number of instances of a variant.

    SageMaker publishes no such metric. Each invocation adds 1 to ``Invocations`` and 1/instances to
    ``InvocationsPerInstance``, so the quotient is the number of instances. For asynchronous
    endpoints (``from_queue``) the same is true of the backlog. A minute without invocations has no
    value.
    """
    total, share = "Invocations", "InvocationsPerInstance"
    if from_queue:
        total, share = "ApproximateBacklogSize", "ApproximateBacklogSizePerInstance"
    check_flag("from_queue", from_queue)
    metrics = {
        part: variant_metric(
            name, endpoint_name=endpoint_name, variant_name=variant_name, period=period
        )
        for part, name in (("total", total), ("share", share))
    }
    return number_metric(metrics, "InstanceCount")


class VariantMetrics:
    """The ``metric`` methods of a variant, and of an endpoint with one variant.

    Every method takes the options of ``MetricOptions``.
    """

    def _metric_endpoint_name(self) -> str:
        raise NotImplementedError

    def _metric_variant_name(self) -> str:
        raise NotImplementedError

    def _metric_owner(self) -> Construct:
        """Return the endpoint, whose account and Region have the metrics."""
        raise NotImplementedError

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Return any metric that SageMaker publishes, with its namespace and dimensions.

        Args:
            metric_name: CloudWatch's name of the metric, such as ``"ModelLatency"``.
        """
        return self._metric(metric_name, **options).to_cdk()

    def _metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> MetricValue:
        # The queue belongs to the endpoint, so an endpoint with several variants has its metrics
        # too.
        has_variant = metric_definition(metric_name).has_variant_dimension
        metric = variant_metric(
            metric_name,
            endpoint_name=self._metric_endpoint_name(),
            variant_name=self._metric_variant_name() if has_variant else "",
            **options,
        )
        return metric.of(self._metric_owner())

    # Traffic and errors.

    def metric_invocations(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of invocations, summed over ``period``.

        Not published for asynchronous endpoints.
        """
        return self.metric("Invocations", **options)

    def metric_invocations_per_instance(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Number of invocations per instance, summed over ``period``.

        Not for asynchronous endpoints.
        """
        return self.metric("InvocationsPerInstance", **options)

    def metric_concurrent_requests_per_model(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Maximum number of concurrent requests per model, queued ones included;
        published every 10 s.
        """
        return self.metric("ConcurrentRequestsPerModel", **options)

    def metric_invocation_4xx_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of responses with status 400 to 499. ``"Average"`` gives their share, 0 to 1."""
        return self.metric("Invocation4XXErrors", **options)

    def metric_invocation_5xx_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of responses with status 500 or above. ``"Average"`` gives their share, 0 to 1."""
        return self.metric("Invocation5XXErrors", **options)

    def metric_invocation_model_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of requests without a 2xx response of the container.

        ``"Average"`` gives a share, 0 to 1.
        """
        return self.metric("InvocationModelErrors", **options)

    def metric_mid_stream_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of response streams that failed after they had started.

        Not settled: see :meth:`metric_first_chunk_latency`.
        """
        return self.metric("MidStreamErrors", **options)

    # Time.

    def metric_model_latency(
        self, *, unit: cloudwatch.Unit | None = None, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric | cloudwatch.MathExpression:
        """Time until the container responded, in **microseconds**. Default statistic: p99.

        Args:
            unit: ``Unit.MILLISECONDS`` or ``Unit.SECONDS``, to which metric math converts the
                values. Default: microseconds.

        Raises:
            InvalidValueError: another unit.
        """
        return _in_unit(self._metric("ModelLatency", **or_p99(options)), unit)

    def metric_overhead_latency(
        self, *, unit: cloudwatch.Unit | None = None, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric | cloudwatch.MathExpression:
        """Time that SageMaker added, in **microseconds**.

        The arguments are those of :meth:`metric_model_latency`.
        """
        return _in_unit(self._metric("OverheadLatency", **or_p99(options)), unit)

    def metric_first_chunk_latency(
        self, *, unit: cloudwatch.Unit | None = None, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric | cloudwatch.MathExpression:
        """Time to a stream's first chunk, in **microseconds**.

        Not settled: AWS documents the metrics of first chunks for bidirectional streams. Whether
        ``InvokeEndpointWithResponseStream`` publishes them is not known, so no alarm of this
        library uses them. They have no dimension for components. The arguments are those of
        :meth:`metric_model_latency`.
        """
        return _in_unit(self._metric("FirstChunkLatency", **or_p99(options)), unit)

    def metric_first_chunk_model_latency(
        self, *, unit: cloudwatch.Unit | None = None, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric | cloudwatch.MathExpression:
        """Part of the time to the first chunk that the container took, in **microseconds**.

        Not settled, as :meth:`metric_first_chunk_latency`. The arguments are those of
        :meth:`metric_model_latency`.
        """
        return _in_unit(self._metric("FirstChunkModelLatency", **or_p99(options)), unit)

    def metric_first_chunk_overhead_latency(
        self, *, unit: cloudwatch.Unit | None = None, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric | cloudwatch.MathExpression:
        """Part of the time to the first chunk that SageMaker added, in **microseconds**.

        Not settled, as :meth:`metric_first_chunk_latency`. The arguments are those of
        :meth:`metric_model_latency`.
        """
        return _in_unit(self._metric("FirstChunkOverheadLatency", **or_p99(options)), unit)

    # Instances.

    def metric_cpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """CPU utilization in percent, from 0 to 100 **times** the vCPUs of an instance."""
        return self.metric("CPUUtilization", **options)

    def metric_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Main memory used by the containers, in percent from 0 to 100."""
        return self.metric("MemoryUtilization", **options)

    def metric_disk_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Disk space used by the containers, in percent from 0 to 100."""
        return self.metric("DiskUtilization", **options)

    def metric_gpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """GPU utilization in percent, from 0 to 100 **times** the GPUs of an instance."""
        return self.metric("GPUUtilization", **options)

    def metric_gpu_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """GPU memory used, in percent, from 0 to 100 **times** the GPUs of an instance."""
        return self.metric("GPUMemoryUtilization", **options)

    def metric_instance_count(
        self, *, from_queue: bool = False, period: Duration | None = None
    ) -> cloudwatch.MathExpression:
        """Number of instances, calculated from the invocations in total and per instance.

        There is no value while there are no invocations.

        Args:
            from_queue: Whether to calculate it from the backlog, for an asynchronous endpoint.
            period: Period of the metric. Default: 1 minute.
        """
        return self._instance_count(from_queue=from_queue, period=period).to_cdk()

    def _instance_count(self, *, from_queue: bool, period: Duration | None) -> ExpressionValue:
        metric = instance_count_metric(
            endpoint_name=self._metric_endpoint_name(),
            variant_name=self._metric_variant_name(),
            from_queue=from_queue,
            period=period,
        )
        return metric.of(self._metric_owner())

    # Multi-model endpoints. SageMaker publishes no metrics of a single model.

    def metric_loaded_model_count(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of loaded models per instance. ``"Sum"`` gives the models of all instances."""
        return self.metric("LoadedModelCount", **options)

    def metric_model_cache_hit(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Share of requests whose model was already loaded, from 0 to 1."""
        return self.metric("ModelCacheHit", **options)

    def metric_model_loading_wait_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time a request waited for its model to be downloaded and loaded, in **microseconds**."""
        return self.metric("ModelLoadingWaitTime", **options)

    def metric_model_downloading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time to download a model from S3, in **microseconds**."""
        return self.metric("ModelDownloadingTime", **options)

    def metric_model_loading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time Triton needed to load a model, in **microseconds**."""
        return self.metric("ModelLoadingTime", **options)

    def metric_model_unloading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time Triton needed to unload a model, in **microseconds**."""
        return self.metric("ModelUnloadingTime", **options)

    # Asynchronous endpoints: the queue, which all variants share, and failed requests.

    def metric_approximate_backlog_size(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Number of requests that are queued or being processed, of the whole endpoint."""
        return self.metric("ApproximateBacklogSize", **options)

    def metric_approximate_backlog_size_per_instance(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Number of requests that are queued or being processed,
        divided by the number of instances.
        """
        return self.metric("ApproximateBacklogSizePerInstance", **options)

    def metric_approximate_age_of_oldest_request(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Age of the oldest request in the queue, in **seconds**."""
        return self.metric("ApproximateAgeOfOldestRequest", **options)

    def metric_has_backlog_without_capacity(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """1 while requests are queued and no instance is running, otherwise 0."""
        return self.metric("HasBacklogWithoutCapacity", **options)

    def metric_time_in_backlog(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time that a request was queued before it was processed, in **microseconds**."""
        return self.metric("TimeInBacklog", **options)

    def metric_invocation_failures(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of asynchronous invocations that failed for any reason."""
        return self.metric("InvocationFailures", **options)

    def metric_expired_requests(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of queued requests that expired before they were processed."""
        return self.metric("ExpiredRequests", **options)

    def metric_total_processing_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time from the arrival of a request until its response is in S3, in **milliseconds**."""
        return self.metric("TotalProcessingTime", **options)

    def metric_request_download_latency(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Time to download a request from S3, in **microseconds**."""
        return self.metric("RequestDownloadLatency", **options)

    def metric_request_download_failures(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Number of requests that could not be downloaded from S3."""
        return self.metric("RequestDownloadFailures", **options)

    def metric_response_upload_latency(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time to upload a response to S3, in **microseconds**."""
        return self.metric("ResponseUploadLatency", **options)

    def metric_response_upload_failures(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Number of responses that could not be uploaded to S3."""
        return self.metric("ResponseUploadFailures", **options)

    def metric_notification_failures(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of notifications that could not be published to SNS."""
        return self.metric("NotificationFailures", **options)


def _in_unit(
    metric: MetricValue, unit: cloudwatch.Unit | None
) -> cloudwatch.Metric | cloudwatch.MathExpression:
    """Return a metric in microseconds, converted to another unit.

    Raises:
        InvalidValueError: the unit is no time.
    """
    check_type("unit", unit, (cloudwatch.Unit, "Unit.MILLISECONDS"))
    if unit is None or unit is cloudwatch.Unit.MICROSECONDS:
        return metric.to_cdk()
    if unit.name not in _MICROSECONDS_IN:
        raise InvalidValueError(
            "unit: must be MICROSECONDS, MILLISECONDS or SECONDS, "
            f"got {unit.name}; choose one of them"
        )
    # The id is in the template, so it must not have the number of a token.
    statistic = "statistic" if is_token(metric.statistic) else metric.statistic
    name = re.sub(r"\W", "_", f"m_{metric.metric_name}_{statistic}")
    label = f"{metric.metric_name} ({unit.name.lower()})" if metric.label is None else metric.label
    return converted(metric, name, f"/ {_MICROSECONDS_IN[unit.name]}", label).to_cdk()
