"""``ITritonEndpoint`` and ``IInferenceComponent``: the interfaces of endpoints and components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Unpack, runtime_checkable

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Node

from constructs_triton.cdk.metrics.metric_definitions import MetricOptions

if TYPE_CHECKING:
    from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant
    from constructs_triton.cdk.scaling.scalable_copy_count import TritonScalableCopyCount
    from constructs_triton.cdk.scaling.scalable_instance_count import TritonScalableInstanceCount


@runtime_checkable
class ITritonEndpoint(Protocol):
    """The interface of every Triton endpoint, new or imported.

    Use it to annotate parameters. The constructs also implement ``aws_sagemaker.IEndpoint``, so
    other constructs of the CDK accept them, for example the tasks of Step Functions.
    """

    @property
    def node(self) -> Node:
        """The construct's node in the tree."""

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name, a token until the deployment."""

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN."""

    @property
    def variants(self) -> tuple[EndpointVariant, ...]:
        """The production variants."""

    @property
    def is_asynchronous(self) -> bool:
        """Whether requests are queued."""

    @property
    def is_multi_model(self) -> bool:
        """Whether each request names its model, which is loaded at its first request."""

    def grant_invoke(
        self, grantee: iam.IGrantable, *, target_models: Sequence[str] | None = None
    ) -> iam.Grant:
        """Allow a principal to call the endpoint, or only some models of a multi-model endpoint.

        Args:
            grantee: Who gets the permission.
            target_models: Models, archives or patterns of archives that may be called. Default:
                all.
        """

    def grant_invoke_async(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to queue requests and to read the responses.

        Args:
            grantee: Who gets the permission.
        """

    def grant_invoke_with_response_stream(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call the endpoint and receive the response as a stream.

        Args:
            grantee: Who gets the permission.
        """

    def auto_scale_instance_count(
        self, *, min_capacity: float, max_capacity: float
    ) -> TritonScalableInstanceCount:
        """Let Application Auto Scaling choose the instance count of the only variant.

        Args:
            min_capacity: Minimum number of instances; 0 only on an asynchronous endpoint.
            max_capacity: Maximum number of instances.
        """

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Return any metric that SageMaker publishes for the endpoint.

        Args:
            metric_name: CloudWatch's name of the metric, such as ``"ModelLatency"``.
        """


@runtime_checkable
class IInferenceComponent(Protocol):
    """The interface of every inference component, new or imported.

    Use it to annotate parameters.
    """

    @property
    def node(self) -> Node:
        """The construct's node in the tree."""

    @property
    def inference_component_name(self) -> str:
        """The component's name, a token until the deployment."""

    @property
    def inference_component_arn(self) -> str:
        """The component's ARN."""

    @property
    def uses_gpus(self) -> bool | None:
        """Whether the copies reserve GPUs; ``None`` if that is not known."""

    @property
    def scalable_copy_count(self) -> TritonScalableCopyCount | None:
        """The scaling of the copies; ``None`` if the component does not scale."""

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call this component.

        Args:
            grantee: Who gets the permission.
        """

    def grant_invoke_with_response_stream(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call this component and receive the response as a stream.

        Args:
            grantee: Who gets the permission.
        """

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Return any metric that SageMaker publishes for the component.

        Args:
            metric_name: CloudWatch's name of the metric, such as ``"ModelLatency"``.
        """

    def metric_copy_count(self, *, period: Duration | None = None) -> cloudwatch.MathExpression:
        """Number of copies, calculated from the invocations in total and per copy.

        Args:
            period: Period of the metric. Default: 1 minute.
        """
