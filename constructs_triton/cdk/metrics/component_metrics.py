"""CloudWatch metrics of an inference component.

Sources: SageMaker developer guide, "Amazon SageMaker AI metrics in Amazon CloudWatch" and "Scale an
endpoint to zero instances".
"""

from __future__ import annotations

from typing import Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.metrics.metric_definitions import (
    MetricOptions,
    number_metric,
    or_p99,
    published_metric,
)
from constructs_triton.cdk.metrics.metric_values import ExpressionValue, MetricValue


def component_metric(
    metric_name: str, *, inference_component_name: str, **options: Unpack[MetricOptions]
) -> MetricValue:
    """Return a metric of one inference component, over all its copies."""
    return published_metric(
        metric_name, {"InferenceComponentName": inference_component_name}, options
    )


def copy_count_metric(
    inference_component_name: str, *, period: Duration | None = None
) -> ExpressionValue:
    """Return metric math for the number of copies. A minute without invocations has no value."""
    # SageMaker publishes no such metric.
    metrics = {
        part: component_metric(
            name, inference_component_name=inference_component_name, period=period
        )
        for part, name in (("total", "Invocations"), ("share", "InvocationsPerCopy"))
    }
    return number_metric(metrics, "CopyCount")


class ComponentMetrics:
    """The ``metric`` methods of an inference component.

    Each takes the options of ``MetricOptions``.
    """

    def _metric_component_name(self) -> str:
        raise NotImplementedError

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Return any metric that SageMaker publishes for the component, with its namespace.

        Args:
            metric_name: CloudWatch's name of the metric, such as ``"ModelLatency"``.
        """
        name = self._metric_component_name()
        metric = component_metric(metric_name, inference_component_name=name, **options)
        return metric.of(self).to_cdk()

    def metric_invocations(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of invocations, summed over ``period``."""
        return self.metric("Invocations", **options)

    def metric_invocations_per_copy(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of invocations per copy, summed over ``period``."""
        return self.metric("InvocationsPerCopy", **options)

    def metric_concurrent_requests_per_copy(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """Maximum number of concurrent requests per copy; published every 10 s."""
        return self.metric("ConcurrentRequestsPerCopy", **options)

    def metric_no_capacity_failures(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Number of requests that failed because the component had no copy."""
        return self.metric("NoCapacityInvocationFailures", **options)

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

    def metric_model_latency(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time until the container responded, in **microseconds**. Default statistic: p99."""
        return self.metric("ModelLatency", **or_p99(options))

    def metric_overhead_latency(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Time that SageMaker added, in **microseconds**. Default statistic: p99."""
        return self.metric("OverheadLatency", **or_p99(options))

    def metric_gpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """GPU utilization of the reserved GPUs, in percent from 0 to 100 whatever their number."""
        return self.metric("GPUUtilizationNormalized", **options)

    def metric_gpu_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Memory in use of the reserved GPUs, in percent from 0 to 100 whatever their number."""
        return self.metric("GPUMemoryUtilizationNormalized", **options)

    def metric_cpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """CPU utilization in percent of the reserved vCPUs,
        or of the limit without a reservation.
        """
        return self.metric("CPUUtilizationNormalized", **options)

    def metric_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Main memory in use, in percent of the reservation."""
        return self.metric("MemoryUtilizationNormalized", **options)

    def metric_copy_count(self, *, period: Duration | None = None) -> cloudwatch.MathExpression:
        """Number of copies, calculated from the invocations in total and per copy.

        Args:
            period: Period of the metric. Default: 1 minute.
        """
        metric = copy_count_metric(self._metric_component_name(), period=period)
        return metric.of(self).to_cdk()
