"""Reads the saved cases, and a short run of the fuzzers;
``make fuzz SECONDS=600`` is a long one.
"""

from __future__ import annotations

import pytest
from fuzz_targets import TARGETS, FuzzTarget
from mutation_fuzzer import CASES, fuzz, problem_of

TARGET_BY_NAME = {target.name: target for target in TARGETS}


def test_saved_cases_are_read() -> None:
    """Inputs that once raised an unexpected error, or took too long, do not any more."""
    cases = {path: TARGET_BY_NAME[path.parent.name] for path in sorted(CASES.glob("*/*.bin"))}
    problems = {path.name: problem_of(target, path.read_bytes()) for path, target in cases.items()}
    assert {name: problem for name, problem in problems.items() if problem is not None} == {}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_samples_are_read(target: FuzzTarget) -> None:
    """The samples that are mutated raise no unexpected error."""
    samples = target.samples()
    assert samples
    assert [problem for sample in samples if (problem := problem_of(target, sample))] == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutants_raise_no_unexpected_error(target: FuzzTarget) -> None:
    """Some mutants of each kind, always the same."""
    assert fuzz(target, seed=1, count=30) == 30
