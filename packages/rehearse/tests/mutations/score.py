"""Assesses the rehearsal: all edits, and what of them it finds."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
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
    edits: list[Mutant] = []
    for family in _FAMILIES:
        edits += family()
    return tuple(edits)


def results(step: int = 1, first: int = 0, processes: int = 1) -> list[Result]:
    """Rehearse each ``step``-th edit, from ``first`` on, in processes of their own."""
    if processes == 1:
        return _share(step, first)

    wider_step = step * processes
    starts = [first + step * number for number in range(processes)]
    found: list[Result] = []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for share in pool.map(partial(_share, wider_step), starts):
            found += share
    return found


def _share(step: int, first: int) -> list[Result]:
    """Rehearse the edits of one process."""
    found = []
    with TemporaryDirectory() as folder:
        for number, edit in enumerate(mutants()):
            if number % step == first:
                found.append(assess(edit, Path(folder)))
    return found


def record(every: Iterable[Result]) -> dict[str, Any]:
    """Count by kind, and name what is missed, what is wrongly reported,
    and what is not simulated.
    """
    found = sorted(every, key=lambda result: (result.mutant.kind, result.mutant.name))
    edits: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    only_warnings = 0
    missed = []
    wrongly_reported = []
    not_simulated = []
    for result in found:
        verdict = result.mutant.verdict
        if verdict == "not simulated":
            not_simulated.append(_named(result))
            continue

        kind = (result.mutant.kind, verdict)
        edits[kind] += 1
        if result.is_right:
            right[kind] += 1
            if verdict == "wrong" and not result.has_errors:
                only_warnings += 1
        elif verdict == "wrong":
            missed.append(_named(result))
        elif verdict == "harmless":
            codes = {"codes": list(result.codes), "is error": result.has_errors}
            wrongly_reported.append({**_named(result), **codes})

    return {
        "kinds": [
            {"kind": kind, "verdict": verdict, "edits": count, "right": right[kind, verdict]}
            for (kind, verdict), count in sorted(edits.items())
        ],
        "only warnings": only_warnings,
        "missed": missed,
        "wrongly reported": wrongly_reported,
        "not simulated": not_simulated,
    }


def _named(result: Result) -> dict[str, str]:
    """Return how the record names an edit."""
    mutant = result.mutant
    return {"kind": mutant.kind, "edit": mutant.name, "source": mutant.source}


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
    return [edit for edit in recorded["wrongly reported"] if edit["is error"]]


def score(recorded: dict[str, Any]) -> float:
    """The share of the wrong edits that are found."""
    wrong = [kind for kind in recorded["kinds"] if kind["verdict"] == "wrong"]
    right = sum(int(kind["right"]) for kind in wrong)
    edits = sum(int(kind["edits"]) for kind in wrong)
    return right / edits
