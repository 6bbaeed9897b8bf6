"""For the examples of the checks: how a user follows the hint, written from its text alone.

The key of a case is the key of its example in ``check_examples``. A hint with several ways is
followed in the first one that can be carried out on one machine. ``make hints`` prints how many
succeed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from check_examples import EXAMPLES, code_of, write

from constructs_triton_core.findings import Finding, Severity
from hint_cases import configurations, environments, models
from hint_cases.edits import Repository, Step
from hint_cases.environments import REASONS
from triton_model_check.model_repository import ModelRepository

__all__ = ["CASES", "FEWEST_PERCENT", "REASONS", "left_after", "unsuccessful"]

FEWEST_PERCENT = 95
"""The share of the hints that must end in success."""

CASES: dict[str, tuple[Step, ...]] = {**configurations.CASES, **models.CASES, **environments.CASES}


def left_after(key: str, directory: Path) -> list[Finding]:
    """Follow the hint of an example; return what is left of its finding,
    and the errors that it led to.
    """
    example = EXAMPLES[key]
    repository = Repository(write(example.failing, directory / "m"), example.target)
    for step in CASES[key]:
        step(repository)
    report = ModelRepository.from_directory(repository.path).check(
        repository.target, is_packed=False
    )
    return [
        each
        for each in report.findings
        if each.code == code_of(key) or each.severity is Severity.ERROR
    ]


def unsuccessful() -> dict[str, list[Finding]]:
    """Follow all hints; return the cases that do not end in success, with what is left."""
    left = {}
    for key in CASES:
        with tempfile.TemporaryDirectory() as directory:
            left[key] = left_after(key, Path(directory))
    return {key: findings for key, findings in left.items() if findings}
