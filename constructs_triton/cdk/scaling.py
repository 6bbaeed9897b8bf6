"""Auto scaling of a variant's instance count."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk._tokens import is_concrete
from constructs_triton.cdk.metrics import variant_metric
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.facts.limits import MIN_CAPACITY_REAL_TIME, SAFETY_FACTOR, RangeLimit, check_range

__all__ = ["TritonScalableInstanceCount"]

_SCALABLE_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
_SERVICE_LINKED_ROLE = (
    "aws-service-role/sagemaker.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
)
_ONE_OR_MORE = RangeLimit(1, None, "GPUs")


class TritonScalableInstanceCount(Construct):
    """The instance count of one variant as a target of Application Auto Scaling.

    Made by ``auto_scale_instance_count``; takes any number of policies. With several, capacity grows when any
    of them wants it and shrinks when all of them agree.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        variant_name: str,
        instance_type: InstanceType,
        min_capacity: float,
        max_capacity: float,
    ) -> None:
        check_capacity(min_capacity, max_capacity)
        super().__init__(scope, id)
        self._endpoint_name = endpoint_name
        self._variant_name = variant_name
        self._instance_type = instance_type
        self.scalable_target = appscaling.ScalableTarget(
            self,
            "Resource",
            service_namespace=appscaling.ServiceNamespace.SAGEMAKER,
            scalable_dimension=_SCALABLE_DIMENSION,
            # Built from the endpoint's attribute, so that the target is made after the endpoint and is gone
            # before it.
            resource_id=f"endpoint/{endpoint_name}/variant/{variant_name}",
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            role=self._service_linked_role(),
        )

    def scale_on_gpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
        disable_scale_in: bool = False,
        gpu_count: float | None = None,
        policy_name: str | None = None,
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the GPUs busy to ``target_utilization_percent`` of **each** GPU.

        SageMaker reports GPU utilisation from 0 to 100 times the number of GPUs, so that the target is
        multiplied by the GPUs of the instance type; a type that is not known, or a token, needs
        ``gpu_count``. Cool-downs are 600 s in and 200 s out unless given.
        """
        check_range("target_utilization_percent", target_utilization_percent, RangeLimit(1, 100, "percent"))
        gpus = self._gpus(gpu_count)
        return self.scalable_target.scale_to_track_metric(
            id,
            custom_metric=variant_metric(
                "GPUUtilization", endpoint_name=self._endpoint_name, variant_name=self._variant_name
            ),
            target_value=_product("target_utilization_percent", target_utilization_percent, gpus),
            scale_in_cooldown=_seconds(scale_in_cooldown, 600),
            scale_out_cooldown=_seconds(scale_out_cooldown, 200),
            disable_scale_in=disable_scale_in,
            policy_name=policy_name,
        )

    def scale_on_invocations_per_instance(
        self,
        id: str,
        *,
        target_invocations_per_minute: float | None = None,
        max_requests_per_second: float | None = None,
        safety_factor: float = 0.5,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
        disable_scale_in: bool = False,
        policy_name: str | None = None,
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the invocations of each instance at a number a minute.

        Give it as ``target_invocations_per_minute``, or as what a load test found one instance to bear
        (``max_requests_per_second``), of which ``safety_factor`` times 60 becomes the target. Cool-downs are
        300 s unless given, which is the service's own default.
        """
        target = _invocations_target(target_invocations_per_minute, max_requests_per_second, safety_factor)
        return self.scalable_target.scale_to_track_metric(
            id,
            predefined_metric=appscaling.PredefinedMetric.SAGEMAKER_VARIANT_INVOCATIONS_PER_INSTANCE,
            target_value=target,
            scale_in_cooldown=scale_in_cooldown,
            scale_out_cooldown=scale_out_cooldown,
            disable_scale_in=disable_scale_in,
            policy_name=policy_name,
        )

    def _gpus(self, gpu_count: float | None) -> float:
        if gpu_count is not None:
            check_range("gpu_count", gpu_count, _ONE_OR_MORE)
            return gpu_count
        if self._instance_type.gpus is None:
            raise InvalidValueError(
                "gpu_count: the GPUs of the instance type are not known, "
                f'got instance type "{self._instance_type}"; say how many GPUs one instance has'
            )
        if self._instance_type.gpus == 0:
            raise InvalidValueError(
                f'instance_type: has no NVIDIA GPU to scale on, got "{self._instance_type}"; '
                "use a GPU instance type or scale_on_invocations_per_instance"
            )
        return self._instance_type.gpus

    def _service_linked_role(self) -> iam.IRole:
        stack = Stack.of(self)
        arn = f"arn:{stack.partition}:iam::{stack.account}:role/{_SERVICE_LINKED_ROLE}"
        return iam.Role.from_role_arn(self, "ServiceLinkedRole", arn, mutable=False)


def check_capacity(min_capacity: float, max_capacity: float) -> None:
    """Raise ``InvalidValueError`` unless the bounds are a range of instances, at least one."""
    check_range("min_capacity", min_capacity, MIN_CAPACITY_REAL_TIME)
    check_range("max_capacity", max_capacity, MIN_CAPACITY_REAL_TIME)
    if is_concrete(min_capacity) and is_concrete(max_capacity) and min_capacity > max_capacity:
        raise InvalidValueError(
            f"min_capacity: must not be above max_capacity {max_capacity:g}, got {min_capacity:g}; "
            "lower it or raise max_capacity"
        )


def _invocations_target(per_minute: float | None, per_second: float | None, safety_factor: float) -> float:
    if per_minute is not None and per_second is None:
        _check_positive("target_invocations_per_minute", per_minute)
        return per_minute
    if per_second is not None and per_minute is None:
        _check_positive("max_requests_per_second", per_second)
        _check_positive("safety_factor", safety_factor)
        check_range("safety_factor", safety_factor, SAFETY_FACTOR)
        return _product("max_requests_per_second", per_second, safety_factor * 60)
    given = "neither" if per_minute is None else "both"
    raise InvalidValueError(
        "target_invocations_per_minute: exactly one of it and max_requests_per_second decides the target, "
        f"got {given}; give one of them"
    )


def _product(property: str, value: float, factor: float) -> float:
    """``value * factor``, which CloudFormation cannot compute for a value it fills in later."""
    if factor == 1 or (is_concrete(value) and is_concrete(factor)):
        return value * factor
    raise InvalidValueError(
        f"{property}: has to be multiplied, which CloudFormation cannot do, got a value that is only known "
        "at deployment; give a number"
    )


def _check_positive(property: str, value: float) -> None:
    if is_concrete(value) and not value > 0:
        raise InvalidValueError(f"{property}: must be above 0, got {value:g}; raise it")


def _seconds(given: Duration | None, default: int) -> Duration:
    return Duration.seconds(default) if given is None else given
