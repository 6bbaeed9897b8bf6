"""CloudWatch metrics of the instances that inference components are placed on.

Source: SageMaker developer guide, "Amazon SageMaker AI metrics in Amazon CloudWatch".
"""

from __future__ import annotations

from typing import Unpack

from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.metrics.metric_definitions import MetricOptions
from constructs_triton.cdk.metrics.metrics import VariantMetrics


class HostMetrics(VariantMetrics):
    """The ``metric`` methods that only an endpoint with inference components has.

    SageMaker publishes these metrics while the endpoint has a component. Each method takes the
    options of ``MetricOptions``.
    """

    def metric_cpu_reservation(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """vCPUs that copies reserve, in percent of an instance, from 0 to 100."""
        return self.metric("CPUReservation", **options)

    def metric_gpu_reservation(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """GPUs that copies reserve, in percent of an instance, from 0 to 100."""
        return self.metric("GPUReservation", **options)

    def metric_memory_reservation(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Main memory that copies reserve, in percent of an instance, from 0 to 100."""
        return self.metric("MemoryReservation", **options)

    def metric_cpu_utilization_normalized(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """CPU utilization of an instance, in percent from 0 to 100 whatever its vCPUs."""
        return self.metric("CPUUtilizationNormalized", **options)

    def metric_gpu_utilization_normalized(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """GPU utilization of an instance, in percent from 0 to 100 whatever its GPUs."""
        return self.metric("GPUUtilizationNormalized", **options)

    def metric_gpu_memory_utilization_normalized(
        self, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """GPU memory used of an instance, in percent from 0 to 100 whatever its GPUs."""
        return self.metric("GPUMemoryUtilizationNormalized", **options)
