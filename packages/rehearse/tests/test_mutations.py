"""Generated edits of templates: what a rehearsal finds of them,
by the record and in a small sample.
"""

from __future__ import annotations

from collections import Counter

import pytest
from mutations.mutant import Mutant, Result
from mutations.score import ENOUGH, mutants, read_record, record, results, score, wrong_errors

STEP = 40
"""A sample of one edit in forty takes about 10 seconds; the acceptance test has a larger one."""


def test_record_is_good_enough() -> None:
    """By the record, at least 85 percent of the wrong edits are found,
    and no harmless one is an error.
    """
    recorded = read_record()
    assert score(recorded) >= ENOUGH
    assert wrong_errors(recorded) == []


def test_record_contains_every_edit() -> None:
    """The record counts exactly the edits that are generated, and every edit has its own name."""
    recorded = read_record()
    generated: Counter[tuple[str, str]] = Counter()
    not_simulated = 0
    for edit in mutants():
        if edit.verdict == "not simulated":
            not_simulated += 1
        else:
            generated[edit.kind, edit.verdict] += 1

    counted = {(kind["kind"], kind["verdict"]): kind["edits"] for kind in recorded["kinds"]}
    assert counted == generated
    assert len(recorded["not simulated"]) == not_simulated

    names = [(edit.kind, edit.name) for edit in mutants()]
    assert len(names) == len(set(names))


def test_sample_is_as_recorded() -> None:
    """Of each fortieth edit, the record names exactly those that are missed or wrongly reported."""
    recorded = read_record()
    not_right = [*recorded["missed"], *recorded["wrongly reported"]]
    named = {(edit["kind"], edit["edit"]) for edit in not_right}

    for result in results(STEP):
        edit = result.mutant
        if edit.verdict != "not simulated":
            expected = (edit.kind, edit.name) not in named
            assert result.is_right == expected, (edit.name, result.detail)


@pytest.mark.parametrize(
    ("verdict", "codes", "found", "is_right"),
    [
        ("wrong", ("a",), ("b", "a"), True),
        ("wrong", ("a",), ("b",), False),
        ("wrong", (), (), False),
        ("harmless", (), (), True),
        ("harmless", (), ("b",), False),
    ],
)
def test_only_a_fitting_problem_counts(
    verdict: str, codes: tuple[str, ...], found: tuple[str, ...], is_right: bool
) -> None:
    """A wrong edit is found by a problem that fits,
    and a harmless one must not be reported at all.
    """
    mutant = Mutant("kind", "edit", None, {}, verdict, "source", codes)  # type: ignore[arg-type]
    recorded = record([Result(mutant, found, "")])
    assert recorded["kinds"] == [
        {"kind": "kind", "verdict": verdict, "edits": 1, "right": int(is_right)}
    ]
    assert bool(recorded["missed"]) == (verdict == "wrong" and not is_right)
    assert bool(recorded["wrongly reported"]) == (verdict == "harmless" and not is_right)
