"""How many instances a load needs, at which target they scale, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import ceil
from types import MappingProxyType

from constructs_triton.errors import InvalidValueError
from constructs_triton.planning.measurements import Measurement
from constructs_triton.planning.prices import price_all
from constructs_triton.planning.quantities import Bounds, Number, exact

__all__ = ["Plan", "Requirement", "cheapest", "plan_all"]

_SECONDS_PER_MINUTE = 60
_SAFETY_FACTOR = Bounds("0.000001", "1", "write 50 percent as 0.5")
_HEADROOM = Bounds("0", "1", "write 20 percent as 0.2, or raise requests_per_second")
# More digits than a price times a count can have, so that no cost is ever rounded.
_UNROUNDED = Context(prec=200)
_NO_PRICES: Mapping[str, Number] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The load that an endpoint has to bear.

    ``requests_per_second``
        The highest load, of the whole endpoint.
    ``latency_ms``
        The highest latency that will do, itself included, in milliseconds; ``None`` for any.
    ``headroom``
        The fraction by which capacity is to exceed ``requests_per_second``, from 0 to 1: with 0.2 the plan is
        for 1.2 times as much.
    ``safety_factor``
        The fraction of its measured throughput at which auto scaling keeps an instance, above 0 and up to 1.
        The SageMaker documentation on load testing for automatic scaling starts with 0.5.
    ``min_capacity``
        The fewest instances at any time; two or more are spread over Availability Zones.

    Raises ``InvalidValueError`` for a value out of its range.
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
                "a real-time endpoint keeps one instance"
            )

    @property
    def invocations_per_minute(self) -> Fraction:
        """The load to plan for, headroom included."""
        load = Fraction(exact("requests_per_second", self.requests_per_second)) * _SECONDS_PER_MINUTE
        return load * (1 + Fraction(exact("headroom", self.headroom, _HEADROOM)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One measured configuration, sized for a requirement; in the names that the constructs take.

    ``price_per_hour`` is of one instance, in the currency of the prices given.
    """

    measurement: Measurement
    requirement: Requirement
    price_per_hour: Decimal

    @property
    def configuration(self) -> str:
        """The name of the configuration measured."""
        return self.measurement.configuration

    @property
    def instance_type(self) -> str:
        """The instance type measured, for ``InstanceType.of``."""
        return self.measurement.instance_type

    @property
    def meets_latency(self) -> bool:
        """Whether the latency measured is within the requirement's bound, itself included."""
        bound = self.requirement.latency_ms
        return bound is None or _latency(self) <= exact("latency_ms", bound)

    @property
    def initial_instance_count(self) -> int:
        """The fewest instances that bear the load at the throughput measured, at least ``min_capacity``."""
        return self._instances_at(self._throughput)

    @property
    def min_capacity(self) -> int:
        """The lower bound of auto scaling: the requirement's."""
        return self.requirement.min_capacity

    @property
    def max_capacity(self) -> int:
        """The upper bound of auto scaling: the count at which the load puts every instance at the target.

        A lower one would hold scaling below what its own policy asks for when the load is at its highest.
        """
        return self._instances_at(self._target)

    @property
    def target_invocations_per_minute(self) -> float:
        """The throughput measured times the safety factor, for each instance.

        It is the target of the predefined metric ``SageMakerVariantInvocationsPerInstance``; the SageMaker
        documentation writes it as maximum requests per second times safety factor times 60.
        """
        return float(self._target)

    @property
    def cost_per_hour(self) -> Decimal:
        """Of ``initial_instance_count`` instances: count times price, exactly, never rounded."""
        return _UNROUNDED.multiply(self.price_per_hour, Decimal(self.initial_instance_count))

    @property
    def max_cost_per_hour(self) -> Decimal:
        """Of ``max_capacity`` instances: what scaling reaches while the load is at its highest."""
        return _UNROUNDED.multiply(self.price_per_hour, Decimal(self.max_capacity))

    def to_dict(self) -> dict[str, str | int | float | bool]:
        """The plan as JSON-ready values."""
        return {
            "configuration": self.configuration,
            "instance_type": self.instance_type,
            "invocations_per_minute": float(self.measurement.invocations_per_minute),
            "latency_ms": float(self.measurement.latency_ms),
            "meets_latency": self.meets_latency,
            "initial_instance_count": self.initial_instance_count,
            "min_capacity": self.min_capacity,
            "max_capacity": self.max_capacity,
            "target_invocations_per_minute": self.target_invocations_per_minute,
            "price_per_hour": float(self.price_per_hour),
            "cost_per_hour": float(self.cost_per_hour),
            "max_cost_per_hour": float(self.max_cost_per_hour),
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
        # Fractions, because 33000.000000000004 / 1100 would need an instance that nobody uses.
        needed = ceil(self.requirement.invocations_per_minute / invocations_per_minute)
        return max(needed, self.requirement.min_capacity)


def plan_all(
    measurements: Iterable[Measurement], requirement: Requirement, prices: Mapping[str, Number] = _NO_PRICES
) -> list[Plan]:
    """A plan for every measurement, in their order, whether or not it meets the latency bound.

    ``prices`` are per instance hour by instance type, and take precedence over those of the measurements.
    Raises ``InvalidValueError`` where an instance type has no price.
    """
    rows = list(measurements)
    return [
        Plan(measurement=row, requirement=requirement, price_per_hour=price)
        for row, price in zip(rows, price_all(rows, prices), strict=True)
    ]


def cheapest(plans: Iterable[Plan]) -> Plan:
    """The plan that meets its latency bound at the least cost per hour; of equal costs, the quickest.

    Raises ``InvalidValueError`` that names the least latency measured where no plan meets the bound, and
    where there are no plans at all.
    """
    candidates = list(plans)
    if not candidates:
        raise InvalidValueError("plans: must hold at least one, got none; measure a configuration")
    meeting = [plan for plan in candidates if plan.meets_latency]
    if not meeting:
        raise _none_meets(candidates)
    return min(meeting, key=lambda plan: (plan.cost_per_hour, _latency(plan)))


def _latency(plan: Plan) -> Decimal:
    return exact("latency_ms", plan.measurement.latency_ms)


def _none_meets(plans: Sequence[Plan]) -> InvalidValueError:
    quickest = min(plans, key=_latency)
    return InvalidValueError(
        f"latency_ms: no configuration measured is within the bound, got {quickest.requirement.latency_ms}; "
        f"the quickest is {quickest} with {quickest.measurement.latency_ms} ms: raise the bound to that, "
        "or measure a quicker one"
    )
