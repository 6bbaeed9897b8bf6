"""The examples, the scaling guard and a change of KMS keys in an unfriendly AWS."""

from __future__ import annotations

from pathlib import Path

from parts import PART, PARTS
from seeded_runs import assemblies, case_of, replay_command, run_in_processes, run_seeds

BUDGET_MINUTES = 4

#: Of 50, in which each example is once, and the guard and the keys are the other half.
SEEDS = range(PART, 50, PARTS)


def test_stacks_survive_an_unfriendly_aws(example_apps: Path) -> None:
    """Whatever the order, the failures and the delays, every stack is as declared or as before."""
    result = run_in_processes(assemblies(example_apps, SEEDS), SEEDS, processes=2)
    assert not result.failures, "\n".join(result.failures.values())
    assert len(result.orders) > len(SEEDS)


def test_failing_seed_names_the_command_that_repeats_it(tmp_path: Path) -> None:
    """Without the assemblies every seed fails; the message has the seed,
    its case and the command.
    """
    result = run_seeds(tmp_path / "missing", range(2, 3))
    (message,) = result.failures.values()
    assert message.startswith(f"seed 2, {case_of(2)}: TemplateError(")
    assert message.endswith(replay_command(2))
