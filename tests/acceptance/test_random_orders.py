"""Every example and the scaling guard in an unfriendly AWS, with 200 seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from seeded_runs import assemblies, run_in_processes

BUDGET_MINUTES = 10
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("budget")]

SEEDS = range(200)


def test_stacks_survive_an_unfriendly_aws(tmp_path: Path) -> None:
    """Whatever the order, the failures and the delays, every stack is as declared or as before."""
    result = run_in_processes(assemblies(tmp_path, SEEDS), SEEDS, processes=2)
    assert not result.failures, "\n".join(result.failures.values())
    assert len(result.orders) > len(SEEDS)
