"""A few seeds of the unfriendly AWS; ``tests/acceptance/test_random_orders.py`` runs many."""

from __future__ import annotations

from pathlib import Path

import pytest
from seeded_runs import assemblies, case_of, replay_command, run_seeds

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_engine")]

SEEDS = range(4, 6)  # an example, and the scaling guard


def test_stacks_survive_an_unfriendly_aws(tmp_path: Path, guard_assemblies: Path) -> None:
    """Whatever the order, the failures and the delays, the stack is as declared or as before."""
    (tmp_path / "guard").symlink_to(guard_assemblies)
    result = run_seeds(assemblies(tmp_path, SEEDS), SEEDS)
    assert not result.failures, "\n".join(result.failures.values())


def test_failing_seed_names_the_command_that_repeats_it(tmp_path: Path) -> None:
    """Without the assemblies every seed fails; the message has the seed, its case and the command."""
    result = run_seeds(tmp_path / "missing", range(2, 3))
    (message,) = result.failures.values()
    assert message.startswith(f"seed 2, {case_of(2)}: TemplateError(")
    assert message.endswith(replay_command(2))
