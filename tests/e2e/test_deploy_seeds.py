"""A few seeds of the unfriendly AWS; ``tests/acceptance/test_random_orders.py`` runs many."""

from __future__ import annotations

from pathlib import Path

import pytest
from seeded_runs import assemblies, run_seeds

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_seeds")]

SEEDS = range(4)


def test_stacks_survive_an_unfriendly_aws(tmp_path: Path) -> None:
    """Whatever the order, the failures and the delays, the stack is as declared or as before."""
    result = run_seeds(assemblies(tmp_path, SEEDS), SEEDS)
    assert not result.failures, "\n".join(result.failures.values())
