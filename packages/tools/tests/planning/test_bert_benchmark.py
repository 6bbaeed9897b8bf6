"""The published BERT benchmark, reproduced.

``bert_benchmark.csv`` is the table of the AWS Machine Learning Blog, "Achieve hyperscale
performance for model serving using NVIDIA Triton Inference Server on Amazon SageMaker":
bert-large-uncased, 30000 invocations per minute, 500 ms. Its columns ``initial_instance_count`` and
``cost_per_hour`` are the blog's results.
"""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import (
    Plan,
    Requirement,
    cheapest,
    plan_all,
    read_measurements,
)

BENCHMARK = Path(__file__).parent / "bert_benchmark.csv"
PRICES = {"ml.g4dn.xlarge": 0.7364, "ml.g4dn.2xlarge": 0.94, "ml.g4dn.12xlarge": 4.89}
RESULTS = ("initial_instance_count", "cost_per_hour")
ROWS = list(csv.DictReader(BENCHMARK.read_text().splitlines()))


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """The table without its results, so that no plan can read them there."""
    path = tmp_path / "benchmark.csv"
    with path.open("w", newline="") as file:
        names = [name for name in ROWS[0] if name not in RESULTS]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def plans_within(path: Path, latency_ms: float) -> list[Plan]:
    return plan_all(
        read_measurements(path), Requirement(requests_per_second=500, latency_ms=latency_ms), PRICES
    )


def test_all_instance_counts_and_costs(benchmark: Path) -> None:
    """All 24 counts and hourly costs follow from throughput and price, to the last digit."""
    plans = plans_within(benchmark, 500)
    planned = [
        (plan.configuration, plan.initial_instance_count, plan.cost_per_hour) for plan in plans
    ]
    published = [(row["config"], *(Decimal(row[name]) for name in RESULTS)) for row in ROWS]
    assert len(plans) == 24
    assert planned == published


def test_cheapest_within_half_a_second(benchmark: Path) -> None:
    """TensorRT with dynamic batching on ml.g4dn.2xlarge, 23 instances,
    though cheaper ones are slower.
    """
    plans = plans_within(benchmark, 500)
    best = cheapest(plans)
    assert (best.configuration, best.instance_type) == ("trt-db", "ml.g4dn.2xlarge")
    assert (best.initial_instance_count, best.cost_per_hour) == (23, Decimal("21.62"))
    assert sum(plan.meets_latency for plan in plans) == 5
    assert min(plan.cost_per_hour for plan in plans) == Decimal("7.364")


def test_limit_that_nothing_meets_is_an_error_with_the_fastest(benchmark: Path) -> None:
    """The error has the limit and the fastest measured configuration;
    its latency as the limit succeeds.
    """
    with pytest.raises(InvalidValueError) as error:
        cheapest(plans_within(benchmark, 277))
    assert (
        "got 277; the fastest is trt-db on ml.g4dn.12xlarge with 278 ms: set latency_ms to 278"
        in str(error.value)
    )
    assert cheapest(plans_within(benchmark, 278)).instance_type == "ml.g4dn.12xlarge"
