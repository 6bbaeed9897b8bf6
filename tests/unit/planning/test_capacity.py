"""Counts, bounds, targets and costs of a plan."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constructs_triton.errors import InvalidValueError
from constructs_triton.planning import Measurement, Plan, Requirement, cheapest, plan_all

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


def plan(measurement: Measurement, **requirement: Any) -> Plan:
    return plan_all([measurement], Requirement(**{"requests_per_second": 100, **requirement}))[0]


@pytest.mark.parametrize(
    ("per_minute", "requirement", "count"),
    [
        (600, {}, 10),
        (599, {}, 11),
        (660, {"headroom": 0.1}, 10),
        (720, {"headroom": 0.2}, 10),
        (0.1, {"requests_per_second": 0.005}, 3),
        (600, {"min_capacity": 12}, 12),
    ],
)
def test_instances_bear_the_load_and_no_more(
    per_minute: float, requirement: dict[str, Any], count: int
) -> None:
    """A quotient that comes out even needs no instance more, where floating point would have had one."""
    assert plan(measured(invocations_per_minute=per_minute), **requirement).initial_instance_count == count


def test_floating_point_would_have_had_one_more() -> None:
    """The head-room case above is one that plain floats get wrong."""
    assert 100 * 60 * (1 + 0.1) / 660 > 10


@settings(deadline=None)
@given(
    load=st.decimals("0.01", "100000", places=2),
    per_minute=st.decimals("0.5", "100000", places=1),
    headroom=st.decimals("0", "1", places=2),
    safety_factor=st.decimals("0.01", "1", places=2),
    min_capacity=st.integers(1, 5),
)
def test_bounds_hold_for_any_load(
    load: Decimal, per_minute: Decimal, headroom: Decimal, safety_factor: Decimal, min_capacity: int
) -> None:
    """The count is the least that bears the load, and the upper bound the least that keeps to the target."""
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
    """Count times price is no float: three times 0.1 is 0.3."""
    sized = plan(measured(price_per_hour=0.1, invocations_per_minute=2000), safety_factor=0.25)
    assert (sized.initial_instance_count, sized.cost_per_hour) == (3, Decimal("0.3"))
    assert (sized.max_capacity, sized.max_cost_per_hour) == (12, Decimal("1.2"))


def test_price_table_goes_before_the_measurements_price() -> None:
    """A table says what an hour costs now, a column what it did when it was measured."""
    [sized] = plan_all([measured()], Requirement(requests_per_second=100), {TYPE: Decimal("1.41")})
    assert sized.price_per_hour == Decimal("1.41")


def test_missing_prices_are_all_named() -> None:
    """No price is built in, not even of well-known types."""
    rows = [measured(price_per_hour=None), measured(instance_type="ml.g6.xlarge", price_per_hour=None)]
    with pytest.raises(InvalidValueError, match=r'got none for "ml\.g5\.xlarge", "ml\.g6\.xlarge"'):
        plan_all(rows, Requirement(requests_per_second=1), {"ml.g4dn.xlarge": 1})


def test_equal_costs_go_to_the_quicker() -> None:
    """The order of the rows decides nothing while latencies differ."""
    rows = [measured(latency_ms=50), measured(configuration="b", latency_ms=40)]
    for order in (rows, rows[::-1]):
        assert cheapest(plan_all(order, Requirement(requests_per_second=100))).configuration == "b"


def test_configuration_measured_at_several_loads() -> None:
    """Each load is a row; the cheapest takes the highest throughput that is still within the bound."""
    rows = [
        measured(invocations_per_minute=load, latency_ms=ms)
        for load, ms in ((300, 20), (600, 50), (900, 400))
    ]
    best = cheapest(plan_all(rows, Requirement(requests_per_second=100, latency_ms=100)))
    assert best.measurement is rows[1]
    assert cheapest(plan_all(rows, Requirement(requests_per_second=100))).measurement is rows[2]


def test_nothing_measured_is_refused() -> None:
    """No plans are not a plan."""
    with pytest.raises(InvalidValueError, match="plans: must hold at least one, got none"):
        cheapest([])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"requests_per_second": 0}, "requests_per_second: must be from 0.000001 to"),
        ({"requests_per_second": float("nan")}, "requests_per_second: must be from .*, got nan"),
        ({"latency_ms": -1}, "latency_ms: must be from .*, got -1"),
        ({"headroom": 20}, "headroom: must be from 0 to 1, got 20; write 20 percent as 0.2"),
        ({"safety_factor": 0}, "safety_factor: must be from .* to 1, got 0"),
        ({"safety_factor": 50}, "safety_factor: must be from .* to 1, got 50; write 50 percent as 0.5"),
        ({"min_capacity": 0}, "min_capacity: must be a whole number of at least 1, got 0"),
        ({"min_capacity": 1.5}, "min_capacity: must be a whole number of at least 1, got 1.5"),
    ],
)
def test_requirement_out_of_range_is_refused(values: dict[str, Any], message: str) -> None:
    """The message names the field, the value and the mend."""
    with pytest.raises(InvalidValueError, match=message):
        Requirement(**{"requests_per_second": 1, **values})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"configuration": " "}, 'configuration: must not be empty, got " "'),
        ({"instance_type": "g5.xlarge"}, 'instance_type: .*did you mean "ml.g5.xlarge"'),
        ({"invocations_per_minute": 0}, "invocations_per_minute: must be from .*, got 0"),
        ({"latency_ms": float("inf")}, "latency_ms: must be from .*, got inf"),
        ({"latency_ms": "fast"}, 'latency_ms: must be a number, got "fast"'),
        ({"price_per_hour": Decimal("1e-999999")}, "price_per_hour: must be from .*, got 1E-999999"),
    ],
)
def test_measurement_out_of_range_is_refused(values: dict[str, Any], message: str) -> None:
    """What cannot be a measurement is refused where it is made."""
    with pytest.raises(InvalidValueError, match=message):
        measured(**values)


def test_dictionary_is_what_json_takes() -> None:
    """Every number of the plan is there under the name of the construct's property."""
    assert plan(measured(), latency_ms=40, min_capacity=2).to_dict() == {
        "configuration": "a",
        "instance_type": TYPE,
        "invocations_per_minute": 600,
        "latency_ms": 50,
        "meets_latency": False,
        "initial_instance_count": 10,
        "min_capacity": 2,
        "max_capacity": 20,
        "target_invocations_per_minute": 300,
        "price_per_hour": 1.5,
        "cost_per_hour": 15,
        "max_cost_per_hour": 30,
    }
