"""``MetricsConfig``: how often, and in what detail, SageMaker publishes an endpoint's metrics."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.validation.durations import seconds
from constructs_triton.errors import InvalidValueError

__all__ = ["MetricsConfig"]

# botocore sagemaker service model: MetricsConfig.
_FREQUENCIES_SECONDS = (10, 30, 60, 120, 180, 240, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """What ``MetricsConfig`` of the endpoint configuration says; ``None`` leaves it to SageMaker.

    ``metric_publish_frequency``
        10, 30, 60, 120, 180, 240 or 300 s; 60 s by default. It concerns utilisation only, and invocations as
        well with ``enable_enhanced_metrics``. CloudWatch keeps anything below a minute for three hours.
    ``enable_enhanced_metrics``
        Metrics of each instance and accelerator. Not for multi-model endpoints.
    ``enable_detailed_observability``
        Metrics that SageMaker scrapes from container, GPUs and host. On for new configurations unless
        switched off.

    Raises ``InvalidValueError`` for another frequency.
    """

    metric_publish_frequency: Duration | None = None
    enable_enhanced_metrics: bool | None = None
    enable_detailed_observability: bool | None = None

    def __post_init__(self) -> None:
        frequency = self.metric_publish_frequency
        if frequency is None or frequency.is_unresolved():
            return
        if frequency.to_seconds() not in _FREQUENCIES_SECONDS:
            allowed = ", ".join(str(each) for each in _FREQUENCIES_SECONDS)
            raise InvalidValueError(
                f"metrics_config.metric_publish_frequency: must be {allowed} seconds, "
                f"got {frequency.to_seconds():g}; choose one of them"
            )

    def render(self) -> sagemaker.CfnEndpointConfig.MetricsConfigProperty:
        """The property of the endpoint configuration."""
        return sagemaker.CfnEndpointConfig.MetricsConfigProperty(
            metric_publish_frequency_in_seconds=seconds(self.metric_publish_frequency),
            enable_enhanced_metrics=self.enable_enhanced_metrics,
            enable_detailed_observability=self.enable_detailed_observability,
        )
