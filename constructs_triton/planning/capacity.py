"""Computes how many instances a load needs, their scaling target, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import ceil
from types import MappingProxyType

from constructs_triton.errors import InvalidValueError
from constructs_triton.planning.measurements import Measurement
from constructs_triton.planning.prices import price_all
from constructs_triton.planning.quantities import Bounds, Number, exact
from constructs_triton.planning.scaling import Fleet

__all__ = ["Plan", "Requirement", "best_of_each", "cheapest", "plan_all"]

_SECONDS_PER_MINUTE = 60
#: The AWS Pricing Calculator counts a month as 730 hours.
HOURS_PER_MONTH = 730
_SAFETY_FACTOR = Bounds("0.000001", "1", "write 50 percent as 0.5")
_HEADROOM = Bounds("0", "1", "write 20 percent as 0.2, or raise requests_per_second")
# More digits than a price times a count can have, so no cost is rounded.
_UNROUNDED = Context(prec=200)
_NO_PRICES: Mapping[str, Number] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The load that an endpoint must handle.

    ``requests_per_second``
        The peak load of the whole endpoint.
    ``latency_ms``
        The maximum latency in milliseconds, inclusive. Default: no limit.
    ``headroom``
        Extra capacity as a fraction of ``requests_per_second``, from 0 to 1. With 0.2 the plan is for 1.2
        times the load. Default: 0.
    ``safety_factor``
        The fraction of its measured throughput at which auto scaling keeps an instance, above 0 and up to 1.
        Default: 0.5, which the SageMaker documentation recommends to start with ("Load testing your auto
        scaling configuration").
    ``min_capacity``
        The minimum number of instances. SageMaker spreads two or more over Availability Zones. Default: 1.

    Raises:
        InvalidValueError: a value is out of its range.
    """

    requests_per_second: Number
    latency_ms: Number | None = None
    headroom: Number = 0
    safety_factor: Number = 0.5
    min_capacity: int = 1

    def __post_init__(self) -> None:
        exact("requests_per_second", self.requests_per_second)
        if self.latency_ms is not None:
            exact("latency_ms", self.latency_ms)
        exact("headroom", self.headroom, _HEADROOM)
        exact("safety_factor", self.safety_factor, _SAFETY_FACTOR)
        if not isinstance(self.min_capacity, int) or self.min_capacity < 1:
            raise InvalidValueError(
                f"min_capacity: must be a whole number of at least 1, got {self.min_capacity}; "
                "use 1, or 2 for two Availability Zones"
            )

    @property
    def invocations_per_minute(self) -> Fraction:
        """The load to plan for, including ``headroom``."""
        load = Fraction(exact("requests_per_second", self.requests_per_second)) * _SECONDS_PER_MINUTE
        return load * (1 + Fraction(exact("headroom", self.headroom, _HEADROOM)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One measured configuration, sized for a requirement.

    Its attributes have the names of the constructs' properties.

    Args:
        measurement: What was measured.
        requirement: The load and the limits.
        price_per_hour: Price of one instance, in the currency of your prices.
    """

    measurement: Measurement
    requirement: Requirement
    price_per_hour: Decimal

    @property
    def configuration(self) -> str:
        """The name of the measured configuration."""
        return self.measurement.configuration

    @property
    def instance_type(self) -> str:
        """The measured instance type, for ``InstanceType.of``."""
        return self.measurement.instance_type

    @property
    def meets_latency(self) -> bool:
        """Whether the measured latency is at most the requirement's ``latency_ms``."""
        bound = self.requirement.latency_ms
        return bound is None or _latency(self) <= exact("latency_ms", bound)

    @property
    def initial_instance_count(self) -> int:
        """The smallest instance count that handles the load, and at least ``min_capacity``.

        It is the load including headroom, divided by the measured throughput, rounded up.
        """
        return self._instances_at(self._throughput)

    @property
    def min_capacity(self) -> int:
        """The minimum capacity for auto scaling: the requirement's."""
        return self.requirement.min_capacity

    @property
    def max_capacity(self) -> int:
        """The maximum capacity for auto scaling, at which peak load keeps every instance at the target.

        It is the load including headroom, divided by :attr:`target_invocations_per_minute`, rounded up. With
        a lower maximum, instances would exceed the target at peak load.
        """
        return self._instances_at(self._target)

    @property
    def target_invocations_per_minute(self) -> float:
        """The measured throughput of one instance times the safety factor.

        It is the target value for the predefined metric ``SageMakerVariantInvocationsPerInstance``. The
        SageMaker documentation writes it as maximum requests per second times safety factor times 60.
        """
        return float(self._target)

    @property
    def cost_per_hour(self) -> Decimal:
        """The cost of ``initial_instance_count`` instances: count times price, without rounding."""
        return _UNROUNDED.multiply(self.price_per_hour, Decimal(self.initial_instance_count))

    @property
    def max_cost_per_hour(self) -> Decimal:
        """The cost of ``max_capacity`` instances, which scaling reaches at peak load."""
        return _UNROUNDED.multiply(self.price_per_hour, Decimal(self.max_capacity))

    @property
    def cost_per_month(self) -> Decimal:
        """The cost of ``initial_instance_count`` instances for 730 hours, without rounding."""
        return _UNROUNDED.multiply(self.cost_per_hour, Decimal(HOURS_PER_MONTH))

    @property
    def cost_per_million(self) -> Decimal:
        """The cost of a million inferences on an instance at its measured throughput, to 4 digits."""
        per_hour = Fraction(self._throughput) * 60
        cost = Fraction(self.price_per_hour) * 1_000_000 / per_hour
        return (Decimal(cost.numerator) / Decimal(cost.denominator)).quantize(Decimal("0.0001"))

    def fleet(self, *, start_minutes: int = 6) -> Fleet:
        """Return the fleet to simulate: this throughput, latency and price.

        Args:
            start_minutes: Minutes until a new instance is in service; see ``Fleet``.
        """
        return Fleet(
            invocations_per_minute=self.measurement.invocations_per_minute,
            start_minutes=start_minutes,
            price_per_hour=self.price_per_hour,
            latency_ms=self.measurement.latency_ms,
        )

    def to_dict(self) -> dict[str, str | int | float | bool]:
        """Return the plan as values that ``json.dumps`` accepts."""
        return {
            "configuration": self.configuration,
            "instance_type": self.instance_type,
            "invocations_per_minute": float(self.measurement.invocations_per_minute),
            "is_lower_bound": self.measurement.is_lower_bound,
            "latency_ms": float(self.measurement.latency_ms),
            "meets_latency": self.meets_latency,
            "initial_instance_count": self.initial_instance_count,
            "min_capacity": self.min_capacity,
            "max_capacity": self.max_capacity,
            "target_invocations_per_minute": self.target_invocations_per_minute,
            "price_per_hour": float(self.price_per_hour),
            "cost_per_hour": float(self.cost_per_hour),
            "max_cost_per_hour": float(self.max_cost_per_hour),
            "cost_per_month": float(self.cost_per_month),
            "cost_per_million": float(self.cost_per_million),
        }

    def __str__(self) -> str:
        return str(self.measurement)

    @property
    def _throughput(self) -> Fraction:
        return Fraction(exact("invocations_per_minute", self.measurement.invocations_per_minute))

    @property
    def _target(self) -> Fraction:
        return self._throughput * Fraction(exact("safety_factor", self.requirement.safety_factor))

    def _instances_at(self, invocations_per_minute: Fraction) -> int:
        # Fractions, because 33000.000000000004 / 1100 as a float would need one instance too many.
        needed = ceil(self.requirement.invocations_per_minute / invocations_per_minute)
        return max(needed, self.requirement.min_capacity)


def plan_all(
    measurements: Iterable[Measurement], requirement: Requirement, prices: Mapping[str, Number] = _NO_PRICES
) -> list[Plan]:
    """Return a plan for every measurement, in the same order, even above the latency limit.

    Args:
        measurements: What was measured.
        requirement: The load and the limits.
        prices: Price of an instance hour by instance type. It takes precedence over the prices of the
            measurements. Default: none.

    Raises:
        InvalidValueError: an instance type has no price.
    """
    rows = list(measurements)
    return [
        Plan(measurement=row, requirement=requirement, price_per_hour=price)
        for row, price in zip(rows, price_all(rows, prices), strict=True)
    ]


def cheapest(plans: Iterable[Plan]) -> Plan:
    """Return the plan with the lowest cost per hour that meets its latency limit.

    Of plans with equal cost, it is the one with the lowest latency.

    Args:
        plans: The plans to compare.

    Raises:
        InvalidValueError: there are no plans, or none meets the limit. The message has the lowest latency
            that was measured.
    """
    candidates = list(plans)
    if not candidates:
        raise InvalidValueError("plans: must contain at least one plan, got none; measure a configuration")
    best = min(candidates, key=_preference)
    if not best.meets_latency:
        raise _none_meets(best)
    return best


def best_of_each(plans: Iterable[Plan]) -> list[Plan]:
    """Return one plan for each configuration on each instance type, in the order of the first ones.

    It is the cheapest that meets its latency limit, or the fastest if none does.

    Args:
        plans: The plans of all measured rates.
    """
    groups: dict[str, list[Plan]] = {}
    for plan in plans:
        groups.setdefault(str(plan), []).append(plan)
    return [min(group, key=_preference) for group in groups.values()]


def _preference(plan: Plan) -> tuple[bool, Decimal, Decimal]:
    """Sort by cost and then latency within the limit, and by latency above it."""
    latency = _latency(plan)
    first, second = (plan.cost_per_hour, latency) if plan.meets_latency else (latency, plan.cost_per_hour)
    return not plan.meets_latency, first, second


def _latency(plan: Plan) -> Decimal:
    return exact("latency_ms", plan.measurement.latency_ms)


def _none_meets(fastest: Plan) -> InvalidValueError:
    latency_ms = fastest.measurement.latency_ms
    return InvalidValueError(
        f"latency_ms: no measured configuration is this fast, got {fastest.requirement.latency_ms}; "
        f"the fastest is {fastest} with {latency_ms} ms: "
        f"set latency_ms to {latency_ms} or more, or measure others"
    )
