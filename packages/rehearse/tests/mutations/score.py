"""Assesses the rehearsal: all edits, and what of them it finds."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .endpoints import endpoint_edits
from .mutant import Mutant, Result, assess
from .names import moved_names
from .policies import log_key_edits, policy_edits, repository_edits, trust_edits
from .refusals import refusals
from .relations import relations

RECORD = Path(__file__).with_name("score.json")
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


@cache
def mutants() -> tuple[Mutant, ...]:
    """Every edit of the base templates."""
    return tuple(each for family in _FAMILIES for each in family())


def results(step: int = 1, first: int = 0, processes: int = 1) -> list[Result]:
    """Rehearse each ``step``-th edit, from ``first`` on, in processes of their own."""
    shares = [(step * processes, first + step * number) for number in range(processes)]
    if processes == 1:
        return _share(*shares[0])
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return [each for share in pool.map(_share, *zip(*shares, strict=True)) for each in share]


def _share(step: int, first: int) -> list[Result]:
    with TemporaryDirectory() as folder:
        return [
            assess(each, Path(folder))
            for number, each in enumerate(mutants())
            if number % step == first
        ]


def record(every: Iterable[Result]) -> dict[str, Any]:
    """Count by kind, and name what is missed, what is wrongly reported,
    and what is not simulated.
    """
    found = sorted(every, key=lambda each: (each.mutant.kind, each.mutant.name))
    counts = Counter((each.mutant.kind, each.mutant.verdict) for each in found)
    right = Counter((each.mutant.kind, each.mutant.verdict) for each in found if each.is_right)
    return {
        "kinds": [
            {"kind": kind, "verdict": verdict, "edits": count, "right": right[kind, verdict]}
            for (kind, verdict), count in sorted(counts.items())
            if verdict != "not simulated"
        ],
        "only warnings": sum(
            each.mutant.verdict == "wrong" and each.is_right and not each.has_errors
            for each in found
        ),
        "missed": [
            _named(each) for each in found if each.mutant.verdict == "wrong" and not each.is_right
        ],
        "wrongly reported": [
            {**_named(each), "codes": list(each.codes), "is error": each.has_errors}
            for each in found
            if each.mutant.verdict == "harmless" and not each.is_right
        ],
        "not simulated": [_named(each) for each in found if each.mutant.verdict == "not simulated"],
    }


def _named(each: Result) -> dict[str, str]:
    return {"kind": each.mutant.kind, "edit": each.mutant.name, "source": each.mutant.source}


def read_record() -> dict[str, Any]:
    """The record of the last run."""
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def write_record(every: Iterable[Result]) -> dict[str, Any]:
    """Replace the record, and return it."""
    found = record(every)
    RECORD.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found


def wrong_errors(recorded: dict[str, Any]) -> list[dict[str, Any]]:
    """The harmless edits that are reported as errors."""
    return [each for each in recorded["wrongly reported"] if each["is error"]]


def score(recorded: dict[str, Any]) -> float:
    """The share of the wrong edits that are found."""
    wrong = [each for each in recorded["kinds"] if each["verdict"] == "wrong"]
    right, edits = (sum(int(each[name]) for each in wrong) for name in ("right", "edits"))
    return right / edits
