"""``Deployment``: how an update reaches the fleet, and what rolls it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.validation.durations import check_duration, seconds
from constructs_triton.cdk.validation.limit_checks import check_range
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits

__all__ = ["CapacitySize", "Deployment"]

_INSTANCES = limits.RangeLimit(1, None, "instances")


@dataclass(frozen=True, slots=True)
class CapacitySize:
    """A part of a variant's fleet; made by :meth:`percent` or :meth:`instances`."""

    type: Literal["CAPACITY_PERCENT", "INSTANCE_COUNT"]
    value: float

    @classmethod
    def percent(cls, value: float) -> CapacitySize:
        """So many percent of the variant's instances."""
        return cls("CAPACITY_PERCENT", value)

    @classmethod
    def instances(cls, count: float) -> CapacitySize:
        """So many instances; the limits in percent apply to them as well."""
        return cls("INSTANCE_COUNT", count)

    def check(self, property: str, percent: limits.RangeLimit) -> None:
        """Raise ``InvalidValueError`` outside of ``percent``, or below one instance."""
        check_range(property, self.value, percent if self.type == "CAPACITY_PERCENT" else _INSTANCES)

    def render(self) -> sagemaker.CfnEndpoint.CapacitySizeProperty:
        """The property of the endpoint."""
        return sagemaker.CfnEndpoint.CapacitySizeProperty(type=self.type, value=self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """How a new configuration replaces the old one; made by one of its class methods.

    ``alarms`` roll the update back when one of them goes off. An alarm on the endpoint's own metrics is made
    after the endpoint: hand it to ``endpoint.add_rollback_alarms`` instead.
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
        """Blue/green: all traffic moves at once; the old fleet stays for ``termination_wait`` (0 s)."""
        return cls(
            strategy="ALL_AT_ONCE",
            termination_wait=termination_wait,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=tuple(alarms),
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
        """Blue/green: ``canary_size`` (10 percent, at most 50) first, the rest after ``wait_interval``.

        The interval is 10 minutes by default, at most an hour.
        """
        return cls(
            strategy="CANARY",
            size=CapacitySize.percent(10) if canary_size is None else canary_size,
            wait_interval=Duration.minutes(10) if wait_interval is None else wait_interval,
            termination_wait=termination_wait,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=tuple(alarms),
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
        """Blue/green: step by step (25 percent, 10 to 50), 10 minutes apart by default."""
        return cls(
            strategy="LINEAR",
            size=CapacitySize.percent(25) if step_size is None else step_size,
            wait_interval=Duration.minutes(10) if wait_interval is None else wait_interval,
            termination_wait=termination_wait,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=tuple(alarms),
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
        """In batches (25 percent, 5 to 50) that replace instances, so that no second fleet is paid for.

        Each batch is watched for ``wait_interval``, 5 minutes by default. Not for several variants.
        """
        return cls(
            strategy="ROLLING",
            size=CapacitySize.percent(25) if maximum_batch_size is None else maximum_batch_size,
            rollback_size=rollback_maximum_batch_size,
            wait_interval=Duration.minutes(5) if wait_interval is None else wait_interval,
            maximum_execution_timeout=maximum_execution_timeout,
            alarms=tuple(alarms),
        )

    def __post_init__(self) -> None:
        sizes = {
            "CANARY": ("canary_size", limits.CANARY_SIZE_PERCENT),
            "LINEAR": ("step_size", limits.LINEAR_STEP_SIZE_PERCENT),
            "ROLLING": ("maximum_batch_size", limits.ROLLING_BATCH_SIZE_PERCENT),
        }
        if self.size is not None:
            name, limit = sizes[self.strategy]
            self.size.check(f"deployment.{name}", limit)
        if self.rollback_size is not None:
            self.rollback_size.check(
                "deployment.rollback_maximum_batch_size", limits.RangeLimit(1, 100, "percent of the fleet")
            )
        self._check_durations()

    def _check_durations(self) -> None:
        timeout = self.maximum_execution_timeout
        check_duration("deployment.wait_interval", self.wait_interval, limits.WAIT_INTERVAL_SECONDS)
        check_duration("deployment.termination_wait", self.termination_wait, limits.TERMINATION_WAIT_SECONDS)
        check_duration(
            "deployment.maximum_execution_timeout", timeout, limits.MAXIMUM_EXECUTION_TIMEOUT_SECONDS
        )
        waits = [
            wait.to_seconds() for wait in (self.wait_interval, self.termination_wait) if wait is not None
        ]
        if timeout is None or not all(is_concrete(value) for value in (timeout.to_seconds(), *waits)):
            return
        # botocore sagemaker service model, BlueGreenUpdatePolicy: larger than the total waiting time.
        if timeout.to_seconds() <= sum(waits):
            raise InvalidValueError(
                f"deployment.maximum_execution_timeout: must be longer than the waits of {sum(waits):g} s, "
                f"got {timeout.to_seconds():g} s; raise it"
            )

    def render(self, alarm_names: Sequence[str]) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
        """The property of the endpoint, rolled back by the alarms of these names."""
        endpoint = sagemaker.CfnEndpoint
        rollback = endpoint.AutoRollbackConfigProperty(
            alarms=[endpoint.AlarmProperty(alarm_name=name) for name in alarm_names]
        )
        is_rolling = self.strategy == "ROLLING"
        return endpoint.DeploymentConfigProperty(
            auto_rollback_configuration=rollback if alarm_names else None,
            rolling_update_policy=self._rolling() if is_rolling else None,
            blue_green_update_policy=None if is_rolling else self._blue_green(),
        )

    def _rolling(self) -> sagemaker.CfnEndpoint.RollingUpdatePolicyProperty:
        assert self.size is not None  # the class methods see to both
        assert self.wait_interval is not None
        return sagemaker.CfnEndpoint.RollingUpdatePolicyProperty(
            maximum_batch_size=self.size.render(),
            wait_interval_in_seconds=self.wait_interval.to_seconds(),
            rollback_maximum_batch_size=None if self.rollback_size is None else self.rollback_size.render(),
            maximum_execution_timeout_in_seconds=seconds(self.maximum_execution_timeout),
        )

    def _blue_green(self) -> sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty:
        size = None if self.size is None else self.size.render()
        return sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
            traffic_routing_configuration=sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
                type=self.strategy,
                canary_size=size if self.strategy == "CANARY" else None,
                linear_step_size=size if self.strategy == "LINEAR" else None,
                # The API wants it always; there is nothing to wait for when all traffic moves at once.
                wait_interval_in_seconds=0 if self.wait_interval is None else seconds(self.wait_interval),
            ),
            termination_wait_in_seconds=seconds(self.termination_wait),
            maximum_execution_timeout_in_seconds=seconds(self.maximum_execution_timeout),
        )
