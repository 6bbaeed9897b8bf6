"""Assesses the rehearsal: all edits, and what of them it finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .endpoints import endpoint_edits
from .mutant import Mutant, Result
from .names import moved_names
from .policies import log_key_edits, policy_edits, repository_edits, trust_edits
from .refusals import refusals
from .relations import relations

RECORD = Path(__file__).parent / "score.json"
"""What was found last; the page of the score is written from it."""
ENOUGH = 0.85
"""The share of the wrong edits that a rehearsal must find."""
_FAMILIES = (
    moved_names,
    refusals,
    policy_edits,
    trust_edits,
    log_key_edits,
    repository_edits,
    relations,
    endpoint_edits,
)


def mutants() -> Iterator[Mutant]:
    """Every edit of the base templates."""
    for family in _FAMILIES:
        yield from family()


def record(results: Iterable[Result]) -> dict[str, Any]:
    """Count by kind, and name what is missed, what is wrongly reported, and what is not simulated."""
    every = list(results)
    counts = Counter((each.mutant.verdict, each.mutant.kind) for each in every)
    right = Counter((each.mutant.verdict, each.mutant.kind) for each in every if each.is_right)
    return {
        "kinds": [
            {"kind": kind, "verdict": verdict, "edits": count, "right": right[verdict, kind]}
            for (verdict, kind), count in sorted(counts.items())
            if verdict != "not simulated"
        ],
        "missed": [_named(each) for each in every if each.mutant.verdict == "wrong" and not each.is_right],
        "wrongly reported": [
            {**_named(each), "codes": each.codes}
            for each in every
            if each.mutant.verdict == "harmless" and each.codes
        ],
        "not simulated": [_named(each) for each in every if each.mutant.verdict == "not simulated"],
    }


def _named(each: Result) -> dict[str, str]:
    return {"kind": each.mutant.kind, "edit": each.mutant.name, "source": each.mutant.source}


def score(recorded: dict[str, Any]) -> float:
    """The share of the wrong edits that are found."""
    wrong = [each for each in recorded["kinds"] if each["verdict"] == "wrong"]
    right, edits = (sum(int(each[name]) for each in wrong) for name in ("right", "edits"))
    return right / edits
