"""``ComponentDeployment``: how an update replaces the copies of a component."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.options.rollback_alarms import alarm_list
from constructs_triton.cdk.validation.limit_checks import check_duration, seconds
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.facts import limits
from constructs_triton_core.limit_checks import check_count, check_range
from constructs_triton_core.tokens import is_token

_COPIES = limits.RangeLimit(1, None, "copies", is_whole=True)
_ROLLBACK = limits.RangeLimit(1, 100, "percent of the copies", is_whole=True)
_Component = sagemaker.CfnInferenceComponent


@dataclass(frozen=True, slots=True)
class CopySize:
    """A part of the copies of a component. Create it with :meth:`percent` or :meth:`copies`.

    Args:
        type: Whether ``value`` is a percentage or a number of copies.
        value: The size, a whole number.
    """

    type: Literal["CAPACITY_PERCENT", "COPY_COUNT"]
    value: float

    @classmethod
    def percent(cls, value: float) -> CopySize:
        """A percentage of the copies.

        Args:
            value: The percentage, such as 50.
        """
        return cls("CAPACITY_PERCENT", value)

    @classmethod
    def copies(cls, count: float) -> CopySize:
        """A number of copies. SageMaker compares it with the copies that run, which scaling
        changes.

        Args:
            count: The number, at least 1.
        """
        return cls("COPY_COUNT", count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentDeployment:
    """How an update replaces the copies. Create it with :meth:`rolling` or :meth:`all_at_once`.

    SageMaker uses it for updates only, and refuses an update of nothing else. So set it at the
    first deployment, and change it only together with the model, the image or another property.

    Args:
        maximum_batch_size: Copies that are replaced at a time, 5 to 50 percent. ``None`` replaces
            them together.
        rollback_maximum_batch_size: Copies that a rollback replaces at a time. Default: 100
            percent.
        wait_interval: How long the alarms are monitored after each batch, at most 1 hour.
        maximum_execution_timeout: Time after which the update has failed, 10 minutes to 8 hours.
            Default: SageMaker's.
        alarms: Alarms that roll the update back, at most 10. An alarm that is created in this app
            needs an ``alarm_name``.

    Raises:
        InvalidValueError: SageMaker would refuse a size, a duration or the number of alarms.
    """

    maximum_batch_size: CopySize | None = None
    rollback_maximum_batch_size: CopySize | None = None
    wait_interval: Duration | None = None
    maximum_execution_timeout: Duration | None = None
    alarms: tuple[cloudwatch.IAlarm, ...] = ()

    @classmethod
    def rolling(
        cls,
        *,
        maximum_batch_size: CopySize | None = None,
        wait_interval: Duration | None = None,
        rollback_maximum_batch_size: CopySize | None = None,
        maximum_execution_timeout: Duration | None = None,
        alarms: Sequence[cloudwatch.IAlarm] = (),
    ) -> ComponentDeployment:
        """Replace the copies in batches. The instances need room for one batch more.

        Args:
            maximum_batch_size: Copies that are replaced at a time, 5 to 50 percent. Default: 50
                percent.
            wait_interval: How long the alarms are monitored after each batch, at most 1 hour.
                Default: 1 minute.
        """
        return cls(
            maximum_batch_size=CopySize.percent(50)
            if maximum_batch_size is None
            else maximum_batch_size,
            rollback_maximum_batch_size=rollback_maximum_batch_size,
            wait_interval=Duration.minutes(1) if wait_interval is None else wait_interval,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=alarm_list("deployment.alarms", alarms),
        )

    @classmethod
    def all_at_once(cls) -> ComponentDeployment:
        """Start all new copies before the old ones stop. The instances need room for both.

        SageMaker supports alarms with :meth:`rolling` only.
        """
        return cls()

    def __post_init__(self) -> None:
        size, rollback_size = self.maximum_batch_size, self.rollback_maximum_batch_size
        _check_size("deployment.maximum_batch_size", size, limits.COPIES_BATCH_SIZE_PERCENT)
        _check_size("deployment.rollback_maximum_batch_size", rollback_size, _ROLLBACK)
        check_duration("deployment.wait_interval", self.wait_interval, limits.WAIT_INTERVAL_SECONDS)
        check_duration(
            "deployment.maximum_execution_timeout",
            self.maximum_execution_timeout,
            limits.MAXIMUM_EXECUTION_TIMEOUT_SECONDS,
        )
        check_count("deployment.alarms", self.alarms, limits.RangeLimit(0, 10, "alarms"))


def _check_size(property: str, size: CopySize | None, percent: limits.RangeLimit) -> None:
    check_type(property, size, (CopySize, "CopySize.copies(1)"))
    if size is None:
        return
    check_range(property, size.value, percent if size.type == "CAPACITY_PERCENT" else _COPIES)


def _render_size(
    size: CopySize,
) -> sagemaker.CfnInferenceComponent.InferenceComponentCapacitySizeProperty:
    """Return the property of the component."""
    return _Component.InferenceComponentCapacitySizeProperty(type=size.type, value=size.value)


def batch_size(deployment: ComponentDeployment, copies: float) -> float:
    """Return how many copies an update starts beside the running ones, at least 1."""
    size = deployment.maximum_batch_size
    if size is None or is_token(copies) or is_token(size.value):
        return copies
    return size.value if size.type == "COPY_COUNT" else math.ceil(copies * size.value / 100)


def render_component_deployment(
    deployment: ComponentDeployment, alarm_names: Sequence[str]
) -> sagemaker.CfnInferenceComponent.InferenceComponentDeploymentConfigProperty | None:
    """Return the property of the component, with the names of the alarms
    that roll an update back.
    """
    if deployment.maximum_batch_size is None:
        return None

    rollback_size = None
    if deployment.rollback_maximum_batch_size is not None:
        rollback_size = _render_size(deployment.rollback_maximum_batch_size)
    policy = _Component.InferenceComponentRollingUpdatePolicyProperty(
        maximum_batch_size=_render_size(deployment.maximum_batch_size),
        wait_interval_in_seconds=seconds(deployment.wait_interval),
        rollback_maximum_batch_size=rollback_size,
        maximum_execution_timeout_in_seconds=seconds(deployment.maximum_execution_timeout),
    )

    rollback = None
    if alarm_names:
        alarms = [_Component.AlarmProperty(alarm_name=name) for name in alarm_names]
        rollback = _Component.AutoRollbackConfigurationProperty(alarms=alarms)
    return _Component.InferenceComponentDeploymentConfigProperty(
        rolling_update_policy=policy, auto_rollback_configuration=rollback
    )
