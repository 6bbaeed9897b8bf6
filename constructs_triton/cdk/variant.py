"""A production variant of an endpoint."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk._tokens import is_concrete
from constructs_triton.cdk.metrics import variant_metric
from constructs_triton.cdk.scaling import TritonScalableInstanceCount, check_capacity
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType

__all__ = ["EndpointVariant"]


class EndpointVariant:
    """One production variant: its scaling and its metrics.

    ``endpoint`` is the construct that scaling is added to, ``cfn_endpoint`` the resource inside it.
    """

    def __init__(
        self,
        endpoint: Construct,
        *,
        cfn_endpoint: sagemaker.CfnEndpoint,
        variant_name: str,
        instance_type: InstanceType,
        initial_instance_count: float,
        position: int = 0,
    ) -> None:
        self.variant_name = variant_name
        # A construct id cannot hold a token; the variant's place in the list is as stable as its name.
        self._construct_name = variant_name if is_concrete(variant_name) else f"Variant{position}"
        self.instance_type = instance_type
        self._endpoint = endpoint
        self._cfn_endpoint = cfn_endpoint
        self._initial_instance_count = initial_instance_count
        self._scalable: TritonScalableInstanceCount | None = None

    @property
    def scalable_instance_count(self) -> TritonScalableInstanceCount | None:
        """What :meth:`auto_scale_instance_count` made; ``None`` where the variant does not scale."""
        return self._scalable

    def auto_scale_instance_count(
        self, *, min_capacity: float, max_capacity: float
    ) -> TritonScalableInstanceCount:
        """Let Application Auto Scaling choose the instance count between two bounds, both included.

        Raises ``InvalidValueError`` where the initial count is outside of them, or on a second call.
        """
        check_capacity(min_capacity, max_capacity)
        self._check_initial_count(min_capacity, max_capacity)
        if self._scalable is not None:
            raise InvalidValueError(
                f'auto_scale_instance_count: already called for variant, got "{self.variant_name}" again; '
                "add further policies to what the first call returned"
            )
        self._scalable = TritonScalableInstanceCount(
            self._endpoint,
            f"{self._construct_name}InstanceCount",
            endpoint_name=self._cfn_endpoint.attr_endpoint_name,
            variant_name=self.variant_name,
            instance_type=self.instance_type,
            min_capacity=min_capacity,
            max_capacity=max_capacity,
        )
        self._retain_instance_count()
        return self._scalable

    def metric(
        self, metric_name: str, *, statistic: str | None = None, period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Any metric SageMaker publishes for the variant, in its own namespace, over a minute by default."""
        return variant_metric(
            metric_name,
            endpoint_name=self._cfn_endpoint.attr_endpoint_name,
            variant_name=self.variant_name,
            statistic=statistic,
            period=period,
        )

    def _retain_instance_count(self) -> None:
        # A deployment keeps the count that scaling has reached, and only that: without the exclusions it
        # would also ignore a changed weight or data capture.
        self._cfn_endpoint.retain_all_variant_properties = True
        self._cfn_endpoint.exclude_retained_variant_properties = [
            sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type=name)
            for name in ("DesiredWeight", "DataCaptureConfig")
        ]

    def _check_initial_count(self, min_capacity: float, max_capacity: float) -> None:
        count = self._initial_instance_count
        if not all(is_concrete(value) for value in (count, min_capacity, max_capacity)):
            return
        if not min_capacity <= count <= max_capacity:
            raise InvalidValueError(
                f"initial_instance_count: must be within the scaling bounds {min_capacity:g} to "
                f"{max_capacity:g}, got {count:g}; start the endpoint inside its bounds"
            )
