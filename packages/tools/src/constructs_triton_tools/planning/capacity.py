"""Computes how many instances a load needs, their scaling target, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import ceil
from types import MappingProxyType

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning.measurements import Measurement
from constructs_triton_tools.planning.prices import HOURS_PER_MONTH, price_all
from constructs_triton_tools.planning.quantities import Number, exact
from constructs_triton_tools.planning.requirement import Requirement
from constructs_triton_tools.planning.scaling import Fleet

# More digits than a price times a count can have, so no cost is rounded.
_UNROUNDED = Context(prec=200)
_STREAM_FIGURES = ("concurrency", "first_token_ms", "between_tokens_ms", "tokens_per_second")
_NO_PRICES: Mapping[str, Number] = MappingProxyType({})


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
        """Whether the measured latency is at most the requirement's,
        and likewise each limit of streams.
        """
        limits = self.requirement.limits
        return all(_figure(self, name) <= exact(name, limit) for name, limit in limits.items())

    @property
    def compared_ms(self) -> Decimal:
        """The figure by which plans are compared, beside cost:
        that of the requirement's first limit.
        """
        return _figure(self, self.requirement.compared)

    @property
    def initial_instance_count(self) -> int:
        """The smallest instance count that handles the load, and at least ``min_capacity``.

        It is the load including headroom, divided by the measured throughput or concurrency,
        rounded up.
        """
        return self._instances_at(self._capacity)

    @property
    def min_capacity(self) -> int:
        """The minimum capacity for auto scaling: the requirement's."""
        return self.requirement.min_capacity

    @property
    def max_capacity(self) -> int:
        """The maximum capacity for auto scaling, at which peak load keeps every instance at the
        target.

        It is the load including headroom, divided by the target, rounded up. With a lower maximum,
        instances would exceed the target at peak load.
        """
        return self._instances_at(self._capacity * self.requirement.target_fraction)

    @property
    def target_invocations_per_minute(self) -> float:
        """The measured throughput of one instance times the safety factor.

        It is the target value for the predefined metric ``SageMakerVariantInvocationsPerInstance``.
        The SageMaker documentation writes it as maximum requests per second times safety factor
        times 60.
        """
        return float(self._throughput * self.requirement.target_fraction)

    @property
    def target_concurrent_requests(self) -> float | None:
        """The measured concurrency of one instance times the safety factor.

        It is the target value for ``scale_on_concurrent_requests``. ``None`` if the requirement is
        a rate.
        """
        if self.requirement.concurrent_streams is None:
            return None
        return float(self._capacity * self.requirement.target_fraction)

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
        """The cost of a million inferences on an instance at its measured throughput,
        to 4 digits.
        """
        return self._cost_of_million(self._throughput * 60)

    @property
    def cost_per_million_tokens(self) -> Decimal | None:
        """The cost of a million tokens on an instance at its measured tokens per second, to 4
        digits.

        ``None`` if they were not measured. Where ``token_unit`` is ``"events"``, it is that of
        events.
        """
        tokens = self.measurement.tokens_per_second
        if tokens is None:
            return None
        return self._cost_of_million(Fraction(exact("tokens_per_second", tokens)) * 3600)

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
        """Return the plan as values that ``json.dumps`` accepts;
        of streams only what was measured.
        """
        measured = {name: getattr(self.measurement, name) for name in _STREAM_FIGURES}
        computed = {
            "cost_per_million_tokens": self.cost_per_million_tokens,
            "target_concurrent_requests": self.target_concurrent_requests,
        }
        streams = {
            name: float(value)
            for name, value in {**measured, **computed}.items()
            if value is not None
        }
        unit = {"token_unit": self.measurement.token_unit} if self.measurement.token_unit else {}
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
            **streams,
            **unit,
        }

    def __str__(self) -> str:
        return str(self.measurement)

    @property
    def _throughput(self) -> Fraction:
        return Fraction(exact("invocations_per_minute", self.measurement.invocations_per_minute))

    @property
    def _capacity(self) -> Fraction:
        """What one instance handles, in the unit of the requirement's load."""
        if self.requirement.concurrent_streams is None:
            return self._throughput
        return Fraction(_figure(self, "concurrency"))

    def _cost_of_million(self, per_hour: Fraction) -> Decimal:
        cost = Fraction(self.price_per_hour) * 1_000_000 / per_hour
        return (Decimal(cost.numerator) / Decimal(cost.denominator)).quantize(Decimal("0.0001"))

    def _instances_at(self, load_of_instance: Fraction) -> int:
        # Fractions, because 33000.000000000004 / 1100 as a float would need one instance too many.
        needed = ceil(self.requirement.load / load_of_instance)
        return max(needed, self.requirement.min_capacity)


def plan_all(
    measurements: Iterable[Measurement],
    requirement: Requirement,
    prices: Mapping[str, Number] = _NO_PRICES,
) -> list[Plan]:
    """Return a plan for every measurement, in the same order, even above the latency limit.

    Args:
        measurements: What was measured.
        requirement: The load and the limits.
        prices: Price of an instance hour by instance type. It takes precedence over the prices of
            the measurements. Default: none.

    Raises:
        InvalidValueError: an instance type has no price, or a measurement lacks a figure of streams
            that the requirement is about.
    """
    rows = list(measurements)
    _check_measured(rows, requirement)
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
        InvalidValueError: there are no plans, or none meets the limit. The message has the lowest
            latency that was measured.
    """
    candidates = list(plans)
    if not candidates:
        raise InvalidValueError(
            "plans: must contain at least one plan, got none; measure a configuration"
        )
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


def pareto_front(plans: Iterable[Plan]) -> list[Plan]:
    """Return the plans that are not beaten, by rising cost and falling latency.

    A plan is beaten by one that costs no more and is no slower. Of equal plans the first one is
    returned.

    Args:
        plans: The plans to compare.
    """
    front: list[Plan] = []
    for plan in sorted(plans, key=lambda plan: (plan.cost_per_hour, plan.compared_ms)):
        if not front or plan.compared_ms < front[-1].compared_ms:
            front.append(plan)
    return front


def _check_measured(measurements: Iterable[Measurement], requirement: Requirement) -> None:
    concurrency = () if requirement.concurrent_streams is None else ("concurrency",)
    for measurement in measurements:
        for name in (*concurrency, *requirement.limits):
            if getattr(measurement, name) is None:
                raise InvalidValueError(
                    f"{name}: was not measured for {measurement}; "
                    "measure it with `constructs-triton load-test --stream`"
                )


def _preference(plan: Plan) -> tuple[bool, Decimal, Decimal]:
    """Sort by cost and then latency within the limits,
    and by how far they are missed above them.
    """
    if plan.meets_latency:
        return False, plan.cost_per_hour, plan.compared_ms
    limits = plan.requirement.limits
    return (
        True,
        max(_figure(plan, name) / exact(name, limits[name]) for name in limits),
        plan.cost_per_hour,
    )


def _figure(plan: Plan, name: str) -> Decimal:
    return exact(name, getattr(plan.measurement, name))


def _none_meets(fastest: Plan) -> InvalidValueError:
    """The error for the first limit that the fastest plan misses."""
    limits = fastest.requirement.limits
    name = next(name for name in limits if _figure(fastest, name) > exact(name, limits[name]))
    measured = getattr(fastest.measurement, name)
    return InvalidValueError(
        f"{name}: no measured configuration is this fast, got {limits[name]}; "
        f"the fastest is {fastest} with {measured} ms: "
        f"set {name} to {measured} or more, or measure others"
    )
