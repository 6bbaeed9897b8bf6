"""Instance counts, limits, targets and costs of a plan."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import Measurement, Plan, Requirement, cheapest, plan_all

TYPE = "ml.g5.xlarge"


def measured(**values: Any) -> Measurement:
    defaults = {
        "configuration": "a",
        "instance_type": TYPE,
        "invocations_per_minute": 600,
        "latency_ms": 50,
        "price_per_hour": 1.5,
    }
    return Measurement(**{**defaults, **values})


def required(**values: Any) -> Requirement:
    return Requirement(**{"requests_per_second": 1, **values})


def plan(measurement: Measurement, **requirement: Any) -> Plan:
    return plan_all([measurement], Requirement(**{"requests_per_second": 100, **requirement}))[0]


@pytest.mark.parametrize(
    ("per_minute", "requirement", "count"),
    [
        (599, {}, 11),
        (660, {"headroom": 0.1}, 10),
        (720, {"headroom": 0.2}, 10),
        (0.1, {"requests_per_second": 0.005}, 3),
    ],
)
def test_instance_count_is_the_smallest_that_handles_the_load(
    per_minute: float, requirement: dict[str, Any], count: int
) -> None:
    """An exact quotient needs no further instance, where floating point would add one."""
    assert (
        plan(measured(invocations_per_minute=per_minute), **requirement).initial_instance_count
        == count
    )


@settings(deadline=None)
@given(
    load=st.decimals("0.01", "100000", places=2),
    per_minute=st.decimals("0.5", "100000", places=1),
    headroom=st.decimals("0", "1", places=2),
    safety_factor=st.decimals("0.01", "1", places=2),
    min_capacity=st.integers(1, 5),
)
def test_capacity_limits_for_any_load(
    load: Decimal, per_minute: Decimal, headroom: Decimal, safety_factor: Decimal, min_capacity: int
) -> None:
    """The count is the smallest that handles the load,
    and the maximum the smallest that keeps the target.
    """
    sized = plan(
        measured(invocations_per_minute=per_minute),
        requests_per_second=load,
        headroom=headroom,
        safety_factor=safety_factor,
        min_capacity=min_capacity,
    )
    needed = Fraction(load) * 60 * (1 + Fraction(headroom))
    throughput, target = Fraction(per_minute), Fraction(per_minute) * Fraction(safety_factor)
    assert 1 <= sized.min_capacity <= sized.initial_instance_count <= sized.max_capacity
    assert sized.initial_instance_count * throughput >= needed
    assert sized.max_capacity * target >= needed
    if sized.initial_instance_count > min_capacity:
        assert (sized.initial_instance_count - 1) * throughput < needed
    if sized.max_capacity > min_capacity:
        assert (sized.max_capacity - 1) * target < needed
    assert sized.target_invocations_per_minute == float(target)


def test_cost_is_exact() -> None:
    """Count times price is not a float: three times 0.1 is 0.3."""
    sized = plan(measured(price_per_hour=0.1, invocations_per_minute=2000), safety_factor=0.25)
    assert (sized.initial_instance_count, sized.cost_per_hour) == (3, Decimal("0.3"))
    assert (sized.max_capacity, sized.max_cost_per_hour) == (12, Decimal("1.2"))


def test_all_missing_prices_are_listed() -> None:
    """No price is built in, not even of well-known types."""
    rows = [
        measured(price_per_hour=None),
        measured(instance_type="ml.g6.xlarge", price_per_hour=None),
    ]
    with pytest.raises(InvalidValueError, match=r'got none for "ml\.g5\.xlarge", "ml\.g6\.xlarge"'):
        plan_all(rows, Requirement(requests_per_second=1), {"ml.g4dn.xlarge": 1})


def test_fastest_of_equal_costs_is_chosen() -> None:
    """The order of the rows does not matter while latencies differ;
    the best of no plans does not exist.
    """
    rows = [measured(latency_ms=50), measured(configuration="b", latency_ms=40)]
    for order in (rows, rows[::-1]):
        assert cheapest(plan_all(order, Requirement(requests_per_second=100))).configuration == "b"
    with pytest.raises(InvalidValueError, match="plans: must contain at least one plan, got none"):
        cheapest([])


def test_configuration_measured_at_several_loads() -> None:
    """Each load is a row; the cheapest plan uses the highest throughput
    within the latency limit.
    """
    rows = [
        measured(invocations_per_minute=load, latency_ms=ms)
        for load, ms in ((300, 20), (600, 50), (900, 400))
    ]
    best = cheapest(plan_all(rows, Requirement(requests_per_second=100, latency_ms=100)))
    assert best.measurement is rows[1]
    assert cheapest(plan_all(rows, Requirement(requests_per_second=100))).measurement is rows[2]


@pytest.mark.parametrize(
    ("build", "values", "message"),
    [
        (required, {"requests_per_second": 0}, "requests_per_second: must be from 0.000001 to"),
        (
            required,
            {"requests_per_second": float("nan")},
            "requests_per_second: must be from .*, got nan",
        ),
        (required, {"latency_ms": -1}, "latency_ms: must be from .*, got -1"),
        (
            required,
            {"headroom": 20},
            "headroom: must be from 0 to 1, got 20; write 20 percent as 0.2",
        ),
        (required, {"safety_factor": 0}, "safety_factor: must be from .* to 1, got 0"),
        (
            required,
            {"safety_factor": 50},
            "safety_factor: .* to 1, got 50; write 50 percent as 0.5",
        ),
        (
            required,
            {"min_capacity": 0},
            "min_capacity: must be a whole number of at least 1, got 0",
        ),
        (
            required,
            {"min_capacity": 1.5},
            "min_capacity: must be a whole number of at least 1, got 1.5",
        ),
        (measured, {"configuration": " "}, 'configuration: must not be empty, got " "'),
        (measured, {"instance_type": "g5.xlarge"}, 'instance_type: .*did you mean "ml.g5.xlarge"'),
        (measured, {"invocations_per_minute": 0}, "invocations_per_minute: must be from .*, got 0"),
        (measured, {"latency_ms": float("inf")}, "latency_ms: must be from .*, got inf"),
        (measured, {"latency_ms": "fast"}, 'latency_ms: must be a number, got "fast"'),
        (measured, {"price_per_hour": Decimal("1e-999999")}, "price_per_hour: .*, got 1E-999999"),
    ],
)
def test_value_out_of_range_is_an_error(build: Any, values: dict[str, Any], message: str) -> None:
    """The message has the field of the requirement or the measurement, the value and the fix."""
    with pytest.raises(InvalidValueError, match=message):
        build(**values)


def test_month_has_730_hours_exactly() -> None:
    """The cost of a month is not rounded, and a million inferences cost what their hours cost."""
    sized = plan(measured(price_per_hour=Decimal("0.7364")), requests_per_second=10)
    assert sized.cost_per_month == Decimal("537.5720")
    assert sized.cost_per_million == Decimal("20.4556")


def test_fleet_of_a_plan_has_its_measurement() -> None:
    """What a plan measured is what its fleet simulates."""
    fleet = plan(measured()).fleet(start_minutes=3)
    assert (fleet.invocations_per_minute, fleet.latency_ms, fleet.start_minutes) == (600, 50, 3)
    assert fleet.price_per_hour == Decimal("1.5")


def test_dictionary_can_be_written_as_json() -> None:
    """It contains every number of the plan under the name of the construct's property."""
    assert plan(measured(), latency_ms=40, min_capacity=2).to_dict() == {
        "configuration": "a",
        "instance_type": TYPE,
        "invocations_per_minute": 600,
        "is_lower_bound": False,
        "latency_ms": 50,
        "meets_latency": False,
        "initial_instance_count": 10,
        "min_capacity": 2,
        "max_capacity": 20,
        "target_invocations_per_minute": 300,
        "price_per_hour": 1.5,
        "cost_per_hour": 15,
        "max_cost_per_hour": 30,
        "cost_per_month": 10950,
        "cost_per_million": 41.6667,
    }


@pytest.mark.parametrize(
    ("requirement", "initial", "maximum"),
    [
        ({}, 10, 20),
        ({"safety_factor": 1}, 10, 10),
        ({"safety_factor": 0.4}, 10, 25),
        ({"safety_factor": 0.3}, 10, 34),
        ({"headroom": 1}, 20, 40),
        ({"headroom": 0.001}, 11, 21),
        ({"requests_per_second": 99.99}, 10, 20),
        ({"requests_per_second": 95}, 10, 19),
        ({"requests_per_second": 0.000001}, 1, 1),
        ({"min_capacity": 15}, 15, 20),
        ({"min_capacity": 30}, 30, 30),
    ],
)
def test_counts_at_their_boundaries(
    requirement: dict[str, Any], initial: int, maximum: int
) -> None:
    """For 600 invocations a minute and instance, and 100 requests a second."""
    sized = plan(measured(), **requirement)
    assert (sized.initial_instance_count, sized.max_capacity) == (initial, maximum)


def test_defaults_of_a_requirement() -> None:
    """No latency limit, no headroom, a safety factor of one half, one instance."""
    given = Requirement(requests_per_second=1)
    assert (given.latency_ms, given.headroom, given.safety_factor, given.min_capacity) == (
        None,
        0,
        0.5,
        1,
    )


@pytest.mark.parametrize(
    ("limit", "meets"),
    [(None, True), (50, True), (50.0, True), (49.999999, False), (Decimal("50.1"), True)],
)
def test_latency_limit_is_inclusive(limit: Any, meets: bool) -> None:
    """A measured latency of exactly the limit meets it."""
    assert plan(measured(latency_ms=50), latency_ms=limit).meets_latency is meets


@pytest.mark.parametrize(
    ("field", "accepted", "rejected"),
    [
        ("requests_per_second", ("0.000001", "1000000000000"), ("0.0000009", "1000000000000.1")),
        ("latency_ms", ("0.000001", "1000000000000"), ("0.0000009", "1000000000000.1")),
        ("headroom", ("0", "1"), ("-0.000001", "1.000001")),
        ("safety_factor", ("0.000001", "1"), ("0.0000009", "1.000001")),
    ],
)
def test_ranges_include_both_ends(field: str, accepted: list[str], rejected: list[str]) -> None:
    """The minimum and the maximum are accepted, the next values outside are not."""
    for value in accepted:
        required(**{field: Decimal(value)})
    for value in rejected:
        with pytest.raises(InvalidValueError, match=f"{field}: must be from "):
            required(**{field: Decimal(value)})


def test_cheapest_compares_the_whole_cost_per_hour() -> None:
    """Ten instances at 1.50 cost less than sixteen at 1.00,
    and two that meet no limit are not considered.
    """
    rows = [
        measured(configuration="small", invocations_per_minute=375, price_per_hour=1),
        measured(configuration="large", invocations_per_minute=600, price_per_hour=1.5),
        measured(configuration="slow", invocations_per_minute=3000, latency_ms=101),
    ]
    plans = plan_all(rows, Requirement(requests_per_second=100, latency_ms=100))
    assert [each.cost_per_hour for each in plans] == [16, 15, 3]
    assert cheapest(plans).configuration == "large"


@pytest.mark.parametrize(
    ("prices", "expected"),
    [({}, ["1.5", "2"]), ({TYPE: 3}, ["3", "3"]), ({"ml.g6.xlarge": 3}, ["1.5", "2"])],
)
def test_price_of_each_measurement(prices: dict[str, int], expected: list[str]) -> None:
    """Measurements of one type may have different prices of their own;
    the table has one for all of them.
    """
    rows = [measured(), measured(configuration="b", price_per_hour=2)]
    plans = plan_all(rows, Requirement(requests_per_second=1), prices)
    assert [each.price_per_hour for each in plans] == [Decimal(value) for value in expected]
