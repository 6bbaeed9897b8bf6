"""``MetricsConfig``: how often and in what detail SageMaker publishes the
metrics of an endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration, IResolvable
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.validation.arguments import check_flag
from constructs_triton.cdk.validation.limit_checks import check_unit, seconds
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.errors import InvalidValueError

# botocore sagemaker service model: MetricsConfig.
_FREQUENCIES_SECONDS = (10, 30, 60, 120, 180, 240, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """Properties of ``MetricsConfig`` in the endpoint configuration; ``None`` means SageMaker's
    default. A flag may also be an ``IResolvable`` that is known at the deployment.

    ``metric_publish_frequency``
        Duration of 10, 30, 60, 120, 180, 240 or 300 seconds. Default: 60 seconds. It applies to
        utilization, and with ``enable_enhanced_metrics`` to invocations too. CloudWatch keeps data
        with a period below one minute for three hours.
    ``enable_enhanced_metrics``
        Whether metrics of each instance and accelerator are published. Not supported on multi-model
        endpoints. Default: no.
    ``enable_detailed_observability``
        Whether SageMaker collects metrics of the GPUs, the hosts and the container. Default: yes
        for new endpoint configurations. Containers must serve Prometheus metrics on port 8080,
        which Triton does not; ``container_metrics=True`` publishes them.

    Raises:
        InvalidValueError: another frequency.
    """

    metric_publish_frequency: Duration | None = None
    enable_enhanced_metrics: bool | IResolvable | None = None
    enable_detailed_observability: bool | IResolvable | None = None

    def __post_init__(self) -> None:
        for name in ("enable_enhanced_metrics", "enable_detailed_observability"):
            value = getattr(self, name)
            if value is not None and not hasattr(value, "resolve"):  # a token
                check_flag(f"metrics_config.{name}", value)
        frequency = self.metric_publish_frequency
        path = "metrics_config.metric_publish_frequency"
        check_type(path, frequency, (Duration, "Duration.seconds(60)"))
        if frequency is None:
            return
        if frequency.is_unresolved():
            check_unit(path, frequency, "seconds")
            return
        if frequency.to_seconds() not in _FREQUENCIES_SECONDS:
            allowed = ", ".join(str(each) for each in _FREQUENCIES_SECONDS)
            raise InvalidValueError(
                f"metrics_config.metric_publish_frequency: must be {allowed} seconds, "
                f"got {frequency.to_seconds():g}; choose one of them"
            )


def render_metrics_config(
    metrics: MetricsConfig,
) -> sagemaker.CfnEndpointConfig.MetricsConfigProperty:
    """Return the property of the endpoint configuration."""
    return sagemaker.CfnEndpointConfig.MetricsConfigProperty(
        metric_publish_frequency_in_seconds=seconds(metrics.metric_publish_frequency),
        enable_enhanced_metrics=metrics.enable_enhanced_metrics,
        enable_detailed_observability=metrics.enable_detailed_observability,
    )
