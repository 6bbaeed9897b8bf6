"""A production variant of an endpoint: its scaling and its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.metrics.container_metrics import ContainerMetrics
from constructs_triton.cdk.metrics.metrics import VariantMetrics
from constructs_triton.cdk.scaling.targets import (
    CapacityPlan,
    check_capacity,
    check_initial,
    check_plan,
    least_instances,
)
from constructs_triton.cdk.validation.endpoint_names import known_endpoint_name
from constructs_triton.cdk.validation.same_environment import check_is_here
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding

if TYPE_CHECKING:
    from constructs_triton.cdk.scaling.scalable_instance_count import TritonScalableInstanceCount
    from constructs_triton.cdk.scaling.scaling_guard import ScalingGuard


@dataclass(frozen=True, slots=True)
class VariantOwner:
    """The endpoint that a variant belongs to.

    Scaling is added to ``construct``. ``cfn_endpoint`` is ``None`` for an imported endpoint, which
    is deployed elsewhere. ``metric_endpoint_name`` is used in metrics. Default: ``endpoint_name``.
    ``known_endpoint_name`` is ``None`` for one that was imported by its ARN alone.
    ``serves_many`` is whether it is a multi-model endpoint.
    """

    construct: Construct
    known_endpoint_name: str | None
    cfn_endpoint: sagemaker.CfnEndpoint | None = None
    is_asynchronous: bool = False
    scaling_guard: ScalingGuard | None = None
    metric_endpoint_name: str | None = None
    serves_many: bool = False

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name; an error if only its ARN is known."""
        return known_endpoint_name(self.construct, self.known_endpoint_name)


class EndpointVariant(VariantMetrics):
    """A production variant or the shadow variant of an endpoint.

    Args:
        owner: The endpoint.
        variant_name: Name of the variant.
        instance_types: Types of its instances, in order of priority; usually one.
        initial_instance_count: Instances at the first deployment; ``None`` if unknown, as for an
            imported endpoint.
        cfn_model: Its ``AWS::SageMaker::Model``; ``None`` for an imported endpoint.
        construct_name: Beginning of the ids of the constructs that belong to the variant.
        container_metrics: Triton's own metrics, if the variant publishes them.
    """

    def __init__(
        self,
        owner: VariantOwner,
        *,
        variant_name: str,
        instance_types: Sequence[InstanceType],
        initial_instance_count: float | None = None,
        cfn_model: sagemaker.CfnModel | None = None,
        construct_name: str,
        container_metrics: ContainerMetrics | None = None,
    ) -> None:
        self.variant_name = variant_name
        self.instance_types = tuple(instance_types)
        self._cfn_model = cfn_model
        self._construct_name = construct_name
        self._owner = owner
        self._initial_instance_count = initial_instance_count
        self._container_metrics = container_metrics
        self._scalable: TritonScalableInstanceCount | None = None

    @property
    def instance_type(self) -> InstanceType:
        """The instance type; with ``instance_pools``, that of the first pool."""
        return self.instance_types[0]

    @property
    def scalable_instance_count(self) -> TritonScalableInstanceCount | None:
        """The result of :meth:`auto_scale_instance_count`;
        ``None`` if the variant does not scale.
        """
        return self._scalable

    @property
    def publishes_container_metrics(self) -> bool:
        """Whether the variant publishes Triton's own metrics."""
        return self._container_metrics is not None

    @property
    def container_metrics(self) -> ContainerMetrics:
        """Triton's own metrics of the variant's models.

        Raises:
            InvalidValueError: the endpoint does not publish them, or is imported.
        """
        if self._container_metrics is None:
            raise InvalidValueError(
                f'container_metrics: variant "{self.variant_name}" publishes no metrics of Triton; '
                "set container_metrics=True on the construct that creates the endpoint"
            )
        return self._container_metrics

    @property
    def cfn_model(self) -> sagemaker.CfnModel:
        """The variant's ``AWS::SageMaker::Model``.

        Raises:
            InvalidValueError: the endpoint is imported.
        """
        if self._cfn_model is None:
            raise InvalidValueError(
                f'cfn_model: the model of variant "{self.variant_name}" of an imported endpoint is '
                "unknown; use the construct that creates the endpoint"
            )
        return self._cfn_model

    def auto_scale_instance_count(
        self, *, min_capacity: float, max_capacity: float
    ) -> TritonScalableInstanceCount:
        """Let Application Auto Scaling choose the instance count. Add policies to the result.

        Args:
            min_capacity: Minimum number of instances; 0 only on an asynchronous endpoint.
            max_capacity: Maximum number of instances.

        Raises:
            InvalidValueError: bounds out of range, an initial instance count outside of them, or a
                second call.
        """
        from constructs_triton.cdk.scaling.scalable_instance_count import (
            TritonScalableInstanceCount,
        )

        least = least_instances(is_asynchronous=self._owner.is_asynchronous)
        check_capacity(min_capacity, max_capacity, least)
        check_initial(
            "initial_instance_count", self._initial_instance_count, min_capacity, max_capacity
        )
        if self._scalable is not None:
            raise InvalidValueError(
                f'auto_scale_instance_count: variant "{self.variant_name}" scales already; '
                "add policies to the result of the first call"
            )
        check_is_here(self._owner.construct, self._owner.construct, "scaling", "it")
        guard = self._owner.scaling_guard
        self._scalable = TritonScalableInstanceCount(
            self._owner.construct,
            # The id differs with the guard, because CloudFormation refuses to change a resource's
            # type.
            f"{self._construct_name}{'' if guard is None else 'Guarded'}InstanceCount",
            endpoint_name=self._owner.endpoint_name,
            variant_name=self.variant_name,
            instance_type=self.instance_type,
            pools=self.instance_types,
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            is_asynchronous=self._owner.is_asynchronous,
            is_guarded=guard is not None,
            serves_many=self._owner.serves_many,
            container_metrics=self._container_metrics,
        )
        if guard is not None:
            guard.protect(self._scalable, self.instance_types)
        if self._owner.cfn_endpoint is not None:
            retain_instance_counts(self._owner.cfn_endpoint)
        return self._scalable

    def apply_plan(self, plan: CapacityPlan) -> TritonScalableInstanceCount:
        """Scale on invocations per instance, with the bounds and the target of a plan.

        A plan for concurrent streams scales on concurrent requests. Set the variant's
        ``initial_instance_count`` to that of the plan.

        Args:
            plan: A ``constructs_triton_tools.planning.Plan``, or an object with its attributes.

        Raises:
            InvalidValueError: not a plan, or a plan for another instance type.
        """
        check_plan(plan, self.instance_types)
        count = self.auto_scale_instance_count(
            min_capacity=plan.min_capacity, max_capacity=plan.max_capacity
        )
        # Not part of the protocol: other objects need not have it.
        concurrent = getattr(plan, "target_concurrent_requests", None)
        if concurrent is None:
            target = plan.target_invocations_per_minute
            count.scale_on_invocations_per_instance(
                "Invocations", target_invocations_per_minute=target
            )
        else:
            count.scale_on_concurrent_requests(
                "ConcurrentRequests", target_concurrent_requests=concurrent
            )
        return count

    def _metric_endpoint_name(self) -> str:
        return self._owner.metric_endpoint_name or self._owner.endpoint_name

    def _metric_variant_name(self) -> str:
        return self.variant_name

    def _metric_owner(self) -> Construct:
        return self._owner.construct


def retain_instance_counts(endpoint: sagemaker.CfnEndpoint) -> None:
    """Let a deployment keep the instance counts that scaling has reached.

    Without the exclusions it would also ignore a changed weight or data capture.
    """
    endpoint.retain_all_variant_properties = True
    endpoint.exclude_retained_variant_properties = [
        sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type=name)
        for name in ("DesiredWeight", "DataCaptureConfig")
    ]


def sequence_warning(variant: EndpointVariant, models: Sequence[str]) -> Finding | None:
    """Return a warning if requests of a sequence to one of the models may
    reach several instances.
    """
    from constructs_triton.cdk.scaling.checks import sequence_finding

    scalable = variant.scalable_instance_count
    if scalable is None:
        count = variant._initial_instance_count or 0
        return sequence_finding("initial_instance_count", models, count, "instances")
    return sequence_finding("max_capacity", models, scalable.max_capacity, "instances")
