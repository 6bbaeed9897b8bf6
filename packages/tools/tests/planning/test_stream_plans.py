"""Plans of models that generate: limits of tokens, and sizes for a number of open streams."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import (
    Measurement,
    Plan,
    Requirement,
    cheapest,
    plan_all,
    read_measurements,
)


def measured(configuration: str = "a", **values: Any) -> Measurement:
    defaults: dict[str, Any] = {
        "instance_type": "ml.g5.xlarge",
        "invocations_per_minute": 240,
        "latency_ms": 1000,
        "price_per_hour": Decimal("1.5"),
        "concurrency": 4,
        "first_token_ms": 150,
        "between_tokens_ms": 30,
        "tokens_per_second": 75,
    }
    return Measurement(configuration=configuration, **{**defaults, **values})


def plan(measurement: Measurement, **requirement: Any) -> Plan:
    return plan_all([measurement], Requirement(**{"concurrent_streams": 100, **requirement}))[0]


@pytest.mark.parametrize(
    ("streams", "headroom", "instances", "most"),
    [(100, 0, 25, 50), (101, 0, 26, 51), (100, 0.2, 30, 60), (1, 0, 1, 1)],
)
def test_instances_for_open_streams(
    streams: float, headroom: float, instances: int, most: int
) -> None:
    """The smallest count whose instances hold all streams,
    and the smallest at half of what they hold.
    """
    sized = plan(measured(), concurrent_streams=streams, headroom=headroom)
    assert (sized.initial_instance_count, sized.max_capacity) == (instances, most)
    assert sized.target_concurrent_requests == 2


def test_rate_of_streams_is_sized_by_their_throughput() -> None:
    """Without concurrent_streams the measured invocations count, as for other requests."""
    (sized,) = plan_all([measured()], Requirement(requests_per_second=8, first_token_ms=200))
    assert (sized.initial_instance_count, sized.target_concurrent_requests) == (2, None)


def test_cost_of_a_million_tokens() -> None:
    """75 tokens per second are 270,000 in the hour that costs 1.5."""
    assert plan(measured()).cost_per_million_tokens == Decimal("5.5556")
    assert plan(measured(tokens_per_second=None)).cost_per_million_tokens is None


def test_cheapest_meets_every_limit() -> None:
    """More open streams cost less, until a limit of tokens is missed."""
    rows = [
        measured("few", concurrency=2, first_token_ms=60, between_tokens_ms=20),
        measured("some", concurrency=8, first_token_ms=200, between_tokens_ms=40),
        measured("late", concurrency=16, first_token_ms=201, between_tokens_ms=40),
        measured("slow", concurrency=32, first_token_ms=150, between_tokens_ms=41),
    ]
    required = Requirement(concurrent_streams=100, first_token_ms=200, between_tokens_ms=40)
    plans = plan_all(rows, required)
    assert cheapest(plans).configuration == "some"
    assert [each.meets_latency for each in plans] == [True, True, False, False]


def test_missed_limit_is_named() -> None:
    """The message is about the plan that misses its limits by least,
    and the first limit it misses.
    """
    rows = [measured("a", between_tokens_ms=90), measured("b", between_tokens_ms=42)]
    plans = plan_all(
        rows, Requirement(concurrent_streams=1, first_token_ms=200, between_tokens_ms=40)
    )
    with pytest.raises(
        InvalidValueError, match=r"between_tokens_ms: .* got 40; the fastest is b .* 42 ms"
    ):
        cheapest(plans)


RATE = {"requests_per_second": 10}
FIGURES = ("concurrency", "first_token_ms", "between_tokens_ms", "tokens_per_second")
NOT_MEASURED = ": was not measured for a on .*load-test --stream"


@pytest.mark.parametrize(
    ("measurement", "requirement", "message"),
    [
        ({"concurrency": None}, {"concurrent_streams": 10}, f"concurrency{NOT_MEASURED}"),
        (
            {"first_token_ms": None},
            {**RATE, "first_token_ms": 200},
            f"first_token_ms{NOT_MEASURED}",
        ),
        (
            {"between_tokens_ms": None},
            {**RATE, "between_tokens_ms": 40},
            f"between_tokens_ms{NOT_MEASURED}",
        ),
        ({}, {}, "or concurrent_streams, got none.*; give one of them"),
        (
            {},
            {**RATE, "concurrent_streams": 1},
            "got requests_per_second and concurrent.*; give one of them",
        ),
        *(({name: 0}, RATE, f"{name}: must be from .*, got 0") for name in FIGURES),
    ],
)
def test_what_cannot_be_planned(
    measurement: Any, requirement: dict[str, Any], message: str
) -> None:
    """Figures that are not measured or not positive, and no load or two,
    which would give two answers.
    """
    with pytest.raises(InvalidValueError, match=message):
        plan_all([measured(**measurement)], Requirement(**requirement))


def test_columns_of_streams_are_read(tmp_path: Path) -> None:
    """They are optional, also in a row; the dictionary of a plan has those that were measured."""
    path = tmp_path / "b.csv"
    path.write_text(
        "configuration,instance_type,invocations_per_minute,latency_ms,price_per_hour,concurrency,"
        "first_token_ms,between_tokens_ms,tokens_per_second,token_unit\n"
        "a,ml.g5.xlarge,240,1000,1.5,4.00,150,,75,events\n"
    )
    (row,) = read_measurements(path)
    assert row == measured(concurrency=Decimal(4), between_tokens_ms=None, token_unit="events")
    found = plan(row).to_dict()
    expected = {"concurrency": 4, "token_unit": "events", "target_concurrent_requests": 2}
    assert found.items() >= {**expected, "cost_per_million_tokens": 5.5556}.items()
    assert "between_tokens_ms" not in found
