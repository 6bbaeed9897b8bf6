"""``IInferenceComponent``: the interface of every inference component, new or imported."""

from __future__ import annotations

from typing import Protocol, Unpack, runtime_checkable

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Node

from constructs_triton.cdk.metrics.metric_options import MetricOptions
from constructs_triton.cdk.scaling.scalable_copy_count import TritonScalableCopyCount

__all__ = ["IInferenceComponent"]


@runtime_checkable
class IInferenceComponent(Protocol):
    """The interface of every inference component, new or imported. Use it to annotate parameters."""

    @property
    def node(self) -> Node:
        """The construct's node in the tree."""
        ...

    @property
    def inference_component_name(self) -> str:
        """The component's name, a token until the deployment."""
        ...

    @property
    def inference_component_arn(self) -> str:
        """The component's ARN."""
        ...

    @property
    def uses_gpus(self) -> bool | None:
        """Whether the copies reserve GPUs; ``None`` if that is not known."""
        ...

    @property
    def scalable_copy_count(self) -> TritonScalableCopyCount | None:
        """The scaling of the copies; ``None`` if the component does not scale."""
        ...

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call this component.

        Args:
            grantee: Who gets the permission.
        """
        ...

    def grant_invoke_with_response_stream(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call this component and receive the response as a stream.

        Args:
            grantee: Who gets the permission.
        """
        ...

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Return any metric that SageMaker publishes for the component.

        Args:
            metric_name: CloudWatch's name of the metric, such as ``"ModelLatency"``.
        """
        ...

    def metric_copy_count(self, *, period: Duration | None = None) -> cloudwatch.MathExpression:
        """Number of copies, calculated from the invocations in total and per copy.

        Args:
            period: Period of the metric. Default: 1 minute.
        """
        ...
