"""The published BERT benchmark, reproduced.

``bert_benchmark.csv`` is the table of the AWS Machine Learning Blog, "Achieve hyperscale performance for
model serving using NVIDIA Triton Inference Server on Amazon SageMaker": bert-large-uncased, 30000 invocations
per minute, 500 ms. Its columns ``initial_instance_count`` and ``cost_per_hour`` are the blog's answers.
"""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from constructs_triton.errors import InvalidValueError
from constructs_triton.planning import Measurement, Plan, Requirement, cheapest, plan_all, read_measurements

BENCHMARK = Path(__file__).parent / "bert_benchmark.csv"
PRICES = {"ml.g4dn.xlarge": 0.7364, "ml.g4dn.2xlarge": 0.94, "ml.g4dn.12xlarge": 4.89}
ANSWERS = ("initial_instance_count", "cost_per_hour")
ROWS = list(csv.DictReader(BENCHMARK.read_text().splitlines()))


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """The table without its answers, so that no plan can have them from there."""
    path = tmp_path / "benchmark.csv"
    with path.open("w", newline="") as file:
        names = [name for name in ROWS[0] if name not in ANSWERS]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def plans_within(path: Path, latency_ms: float) -> list[Plan]:
    return plan_all(
        read_measurements(path), Requirement(requests_per_second=500, latency_ms=latency_ms), PRICES
    )


def test_all_instance_counts_and_costs(questions: Path) -> None:
    """All 24 counts and hourly costs follow from throughput and price, to the last decimal."""
    plans = plans_within(questions, 500)
    planned = [(plan.configuration, plan.initial_instance_count, plan.cost_per_hour) for plan in plans]
    published = [(row["config"], *(Decimal(row[name]) for name in ANSWERS)) for row in ROWS]
    assert len(plans) == 24
    assert planned == published


def test_cheapest_within_half_a_second(questions: Path) -> None:
    """TensorRT with dynamic batching on ml.g4dn.2xlarge, 23 instances, though cheaper ones are slower."""
    plans = plans_within(questions, 500)
    best = cheapest(plans)
    assert (best.configuration, best.instance_type) == ("trt-db", "ml.g4dn.2xlarge")
    assert (best.initial_instance_count, best.cost_per_hour) == (23, Decimal("21.62"))
    assert sum(plan.meets_latency for plan in plans) == 5
    assert min(plan.cost_per_hour for plan in plans) == Decimal("7.364")


def test_bound_that_nothing_meets_is_refused_with_the_quickest(questions: Path) -> None:
    """The refusal names the bound and the quickest configuration measured; that one's latency is accepted."""
    with pytest.raises(InvalidValueError) as refusal:
        cheapest(plans_within(questions, 277))
    assert "got 277; the quickest is trt-db on ml.g4dn.12xlarge with 278 ms" in str(refusal.value)
    assert cheapest(plans_within(questions, 278)).instance_type == "ml.g4dn.12xlarge"


def test_objects_and_file_give_the_same(questions: Path) -> None:
    """Measurements made in Python are planned like those that were read."""
    measurements = [
        Measurement(
            configuration=row["config"],
            instance_type=row["instance_type"],
            invocations_per_minute=float(row["invocations_per_min_per_instance"]),
            latency_ms=int(row["model_latency_ms"]),
            price_per_hour=PRICES[row["instance_type"]],
        )
        for row in ROWS
    ]
    planned = plan_all(measurements, Requirement(requests_per_second=500, latency_ms=500))
    assert [plan.to_dict() for plan in planned] == [plan.to_dict() for plan in plans_within(questions, 500)]
