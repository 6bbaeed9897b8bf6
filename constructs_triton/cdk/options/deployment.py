"""``Deployment``: how an update replaces the fleet, and which alarms roll it back."""

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
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.tokens import is_token

_INSTANCES = limits.RangeLimit(1, None, "instances", is_whole=True)
_ROLLBACK = limits.RangeLimit(1, 100, "percent of the fleet", is_whole=True)


@dataclass(frozen=True, slots=True)
class CapacitySize:
    """A part of the fleet of a variant. Create it with :meth:`percent` or :meth:`instances`.

    Args:
        type: Whether ``value`` is a percentage or a number of instances.
        value: The size.
    """

    type: Literal["CAPACITY_PERCENT", "INSTANCE_COUNT"]
    value: float

    @classmethod
    def percent(cls, value: float) -> CapacitySize:
        """A percentage of the variant's instances.

        Args:
            value: The percentage, such as 25.
        """
        return cls("CAPACITY_PERCENT", value)

    @classmethod
    def instances(cls, count: float) -> CapacitySize:
        """A number of instances. SageMaker applies the limits in percent to it as well.

        Args:
            count: The number, at least 1.
        """
        return cls("INSTANCE_COUNT", count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """How a new configuration replaces the old one. Create it with one of the class methods.

    Args:
        strategy: How the traffic is shifted.
        size: Share of the traffic, or of the instances, in each step.
        rollback_size: Batch of instances of a rollback. Default: 100 percent.
        wait_interval: How long the alarms are monitored after each part or batch, at most 1 hour.
        termination_wait: How long the old fleet is kept after the traffic has shifted, at most 1
            hour. Default: 0 seconds.
        maximum_execution_timeout: Time after which the update has failed, 10 minutes to 8 hours. It
            must be longer than all waits together. Default: SageMaker's.
        alarms: Alarms that roll the update back. An alarm on the endpoint's own metrics is created
            after the endpoint: pass it to ``endpoint.add_rollback_alarms`` instead.

    Raises:
        InvalidValueError: SageMaker would refuse a size or a duration.
    """

    strategy: Literal["ALL_AT_ONCE", "CANARY", "LINEAR", "ROLLING"]
    size: CapacitySize | None = None
    rollback_size: CapacitySize | None = None
    wait_interval: Duration | None = None
    termination_wait: Duration | None = None
    maximum_execution_timeout: Duration | None = None
    alarms: tuple[cloudwatch.IAlarm, ...] = ()

    @classmethod
    def all_at_once(
        cls,
        *,
        termination_wait: Duration | None = None,
        maximum_execution_timeout: Duration | None = None,
        alarms: Sequence[cloudwatch.IAlarm] = (),
    ) -> Deployment:
        """Blue/green: shift all traffic in one step."""
        return cls(
            strategy="ALL_AT_ONCE",
            termination_wait=termination_wait,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=alarm_list("deployment.alarms", alarms),
        )

    @classmethod
    def blue_green_canary(
        cls,
        *,
        canary_size: CapacitySize | None = None,
        wait_interval: Duration | None = None,
        termination_wait: Duration | None = None,
        maximum_execution_timeout: Duration | None = None,
        alarms: Sequence[cloudwatch.IAlarm] = (),
    ) -> Deployment:
        """Blue/green: shift a small part of the traffic first, and the rest after a wait.

        Args:
            canary_size: First part, at most 50 percent. Default: 10 percent.
            wait_interval: Time until the rest is shifted, at most 1 hour. Default: 10 minutes.
        """
        return cls(
            strategy="CANARY",
            size=CapacitySize.percent(10) if canary_size is None else canary_size,
            wait_interval=Duration.minutes(10) if wait_interval is None else wait_interval,
            termination_wait=termination_wait,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=alarm_list("deployment.alarms", alarms),
        )

    @classmethod
    def blue_green_linear(
        cls,
        *,
        step_size: CapacitySize | None = None,
        wait_interval: Duration | None = None,
        termination_wait: Duration | None = None,
        maximum_execution_timeout: Duration | None = None,
        alarms: Sequence[cloudwatch.IAlarm] = (),
    ) -> Deployment:
        """Blue/green: shift the traffic in equal steps. All waits together must take less than 8
        hours.

        Args:
            step_size: Part that is shifted in each step, 10 to 50 percent. Default: 25 percent.
            wait_interval: Time between two steps, at most 1 hour. Default: 10 minutes.
        """
        return cls(
            strategy="LINEAR",
            size=CapacitySize.percent(25) if step_size is None else step_size,
            wait_interval=Duration.minutes(10) if wait_interval is None else wait_interval,
            termination_wait=termination_wait,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=alarm_list("deployment.alarms", alarms),
        )

    @classmethod
    def rolling(
        cls,
        *,
        maximum_batch_size: CapacitySize | None = None,
        wait_interval: Duration | None = None,
        rollback_maximum_batch_size: CapacitySize | None = None,
        maximum_execution_timeout: Duration | None = None,
        alarms: Sequence[cloudwatch.IAlarm] = (),
    ) -> Deployment:
        """Replace the instances in batches, without a second fleet. Supports one variant only.

        All waits together must take less than 8 hours.

        Args:
            maximum_batch_size: Instances that are replaced at a time, 5 to 50 percent. Default: 25
                percent.
            wait_interval: How long the alarms are monitored after each batch, at most 1 hour.
                Default: 5 minutes.
            rollback_maximum_batch_size: Instances that a rollback replaces at a time. Default: 100
                percent.
        """
        return cls(
            strategy="ROLLING",
            size=CapacitySize.percent(25) if maximum_batch_size is None else maximum_batch_size,
            rollback_size=rollback_maximum_batch_size,
            wait_interval=Duration.minutes(5) if wait_interval is None else wait_interval,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=alarm_list("deployment.alarms", alarms),
        )

    def __post_init__(self) -> None:
        sizes = {
            "CANARY": ("canary_size", limits.CANARY_SIZE_PERCENT),
            "LINEAR": ("step_size", limits.LINEAR_STEP_SIZE_PERCENT),
            "ROLLING": ("maximum_batch_size", limits.ROLLING_BATCH_SIZE_PERCENT),
        }
        if self.size is not None:
            name, limit = sizes[self.strategy]
            _check_size(self.size, f"deployment.{name}", limit)
        _check_size(self.rollback_size, "deployment.rollback_maximum_batch_size", _ROLLBACK)
        timeout = self.maximum_execution_timeout
        check_duration("deployment.wait_interval", self.wait_interval, limits.WAIT_INTERVAL_SECONDS)
        check_duration(
            "deployment.termination_wait", self.termination_wait, limits.TERMINATION_WAIT_SECONDS
        )
        check_duration(
            "deployment.maximum_execution_timeout",
            timeout,
            limits.MAXIMUM_EXECUTION_TIMEOUT_SECONDS,
        )
        self._check_total_wait()

    def _check_total_wait(self) -> None:
        """Check that the waits together are shorter than an update may take."""
        # botocore sagemaker service model, BlueGreenUpdatePolicy: larger than the total waiting
        # time.
        count, total = _wait_count(self), total_wait_seconds(self)
        longest = limits.MAXIMUM_EXECUTION_TIMEOUT_SECONDS.maximum
        if total is None or longest is None:
            return
        if total >= longest:
            raise InvalidValueError(
                f"deployment.wait_interval: the {count} waits of this deployment take {total:g} "
                f"seconds together, but must take less than {longest:g} seconds; "
                "shorten it, or use larger steps"
            )
        timeout = seconds(self.maximum_execution_timeout)
        if timeout is not None and not is_token(timeout) and timeout <= total:
            raise InvalidValueError(
                f"deployment.maximum_execution_timeout: must be longer than the waits of {total:g} "
                f"seconds together, got {timeout:g} seconds; raise it"
            )


def total_wait_seconds(deployment: Deployment) -> float | None:
    """Return the seconds of all waits of a deployment together; ``None`` if one is a CDK token."""
    interval = seconds(deployment.wait_interval) or 0
    termination = seconds(deployment.termination_wait) or 0
    if is_token(interval) or is_token(termination):
        return None
    return _wait_count(deployment) * interval + termination


def _wait_count(deployment: Deployment) -> int:
    """How often SageMaker waits for ``wait_interval``, at least."""
    size = deployment.size
    is_in_percent = size is not None and size.type == "CAPACITY_PERCENT"
    if deployment.strategy in ("LINEAR", "ROLLING") and size is not None and is_in_percent:
        # Between the steps. After the last one nothing is left to shift.
        return 1 if is_token(size.value) else math.ceil(100 / size.value) - 1
    return 0 if deployment.wait_interval is None else 1


def _check_size(size: CapacitySize | None, property: str, percent: limits.RangeLimit) -> None:
    check_type(property, size, (CapacitySize, "CapacitySize.percent(20)"))
    if size is not None:
        check_range(
            property, size.value, percent if size.type == "CAPACITY_PERCENT" else _INSTANCES
        )


def _render_size(size: CapacitySize | None) -> sagemaker.CfnEndpoint.CapacitySizeProperty | None:
    """Return the property of the endpoint."""
    if size is None:
        return None
    return sagemaker.CfnEndpoint.CapacitySizeProperty(type=size.type, value=size.value)


def render_deployment(
    deployment: Deployment, alarm_names: Sequence[str]
) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
    """Return the property of the endpoint, with the names of the alarms that roll it back."""
    endpoint = sagemaker.CfnEndpoint
    rollback = endpoint.AutoRollbackConfigProperty(
        alarms=[endpoint.AlarmProperty(alarm_name=name) for name in alarm_names]
    )
    is_rolling = deployment.strategy == "ROLLING"
    return endpoint.DeploymentConfigProperty(
        auto_rollback_configuration=rollback if alarm_names else None,
        rolling_update_policy=_rolling(deployment) if is_rolling else None,
        blue_green_update_policy=None if is_rolling else _blue_green(deployment),
    )


def _rolling(deployment: Deployment) -> sagemaker.CfnEndpoint.RollingUpdatePolicyProperty:
    """Return the policy of an update that replaces some instances at a time."""
    size = _render_size(deployment.size)
    assert size is not None  # the class methods set both
    assert deployment.wait_interval is not None
    return sagemaker.CfnEndpoint.RollingUpdatePolicyProperty(
        maximum_batch_size=size,
        wait_interval_in_seconds=deployment.wait_interval.to_seconds(),
        rollback_maximum_batch_size=_render_size(deployment.rollback_size),
        maximum_execution_timeout_in_seconds=seconds(deployment.maximum_execution_timeout),
    )


def _blue_green(deployment: Deployment) -> sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty:
    """Return the policy of an update that starts a second fleet and shifts the traffic to it."""
    size = _render_size(deployment.size)
    return sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
        traffic_routing_configuration=sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
            type=deployment.strategy,
            canary_size=size if deployment.strategy == "CANARY" else None,
            linear_step_size=size if deployment.strategy == "LINEAR" else None,
            # The API requires it, although nothing waits when all traffic shifts in one step.
            wait_interval_in_seconds=seconds(deployment.wait_interval) or 0,
        ),
        termination_wait_in_seconds=seconds(deployment.termination_wait),
        maximum_execution_timeout_in_seconds=seconds(deployment.maximum_execution_timeout),
    )
