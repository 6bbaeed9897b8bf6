"""``compare_repositories`` with the Triton server, on a model whose rate is known by construction."""

from __future__ import annotations

from pathlib import Path

import pytest
from triton_server import needs_server
from tuned_models import write_model

from constructs_triton_tools.measuring.tuning import compare_repositories
from constructs_triton_tools.measuring.tuning.comparison import Comparison, ComparisonVerdict

BUDGET_MINUTES = 3
pytestmark = [needs_server, pytest.mark.xdist_group("tune")]
#: A comparison of equals is wrong in one case of twenty, by the confidence of its interval.
ATTEMPTS = 2


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A repository whose model has one instance, which uses one of two slots for 5 ms per item."""
    write_model(tmp_path / "one", "short slots")
    return tmp_path / "one"


def compare(first: Path, second: Path, *, rounds: int, seed: int = 0) -> Comparison:
    return compare_repositories(first, second, latency_ms=60, rounds=rounds, step_seconds=1, seed=seed)


def test_second_instance_is_faster(one: Path, tmp_path: Path) -> None:
    """A configuration with two instances, which use both slots, holds about twice the rate."""
    write_model(tmp_path / "two", "short slots", instances=2)
    found = compare(one, tmp_path / "two", rounds=3)
    assert found.verdict is ComparisonVerdict.FASTER, found
    assert 1.4 < found.ratio < 2.9


def test_configuration_is_not_distinguishable_from_itself(one: Path) -> None:
    """A configuration that is compared with itself is neither faster nor slower, and holds the same rate."""
    for seed in range(ATTEMPTS):
        found = compare(one, one, rounds=2, seed=seed)
        if found.verdict is ComparisonVerdict.NOT_DISTINGUISHABLE:
            break
    assert found.verdict is ComparisonVerdict.NOT_DISTINGUISHABLE, found
    assert 0.6 < found.ratio < 1.7
