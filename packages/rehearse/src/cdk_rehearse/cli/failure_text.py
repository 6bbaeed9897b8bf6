"""The text of what happens if a step fails, which follows that of the update without failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from cdk_rehearse.cli.text_parts import (
    Named,
    aligned,
    counted,
    leftover_names,
    listed,
    problem_lines,
    serving_text,
    shortened_notes,
    wrapped,
)

if TYPE_CHECKING:
    from cdk_rehearse.updates.report import Failure, Problem, Rehearsal

_EVENTS = {"reverts": " (SageMaker reverts)", "answers FAILED": " (its function answers FAILED)"}


def failure_lines(found: Rehearsal, calm: Rehearsal) -> Iterator[str]:
    """Yield the lines that follow those of ``calm``: what happens if a step fails, what depends on
    AWS, and how many problems there are.
    """
    if found.failures:
        yield ""
        yield from _failures(found.failures, found.named)
    added = _added_problems(found, calm)
    yield from problem_lines(found, added)

    # Blank lines separate the tables and problems; without them, the lines go on from above.
    is_separate = bool(found.failures or added)
    facts = list(_facts_of_failures(found, calm))
    if facts and is_separate:
        yield ""
    yield from facts
    if is_separate:
        yield ""
    yield _totals(found)


def _added_problems(found: Rehearsal, calm: Rehearsal) -> list[Problem]:
    """The problems of a rehearsal that were not known before steps failed."""
    printed = {(problem.code, problem.stack, problem.path) for problem in calm.problems}
    added = []
    for problem in found.problems:
        if (problem.code, problem.stack, problem.path) not in printed:
            added.append(problem)
    return added


def _totals(found: Rehearsal) -> str:
    """The last line: how many problems there are."""
    warnings = len(found.problems) - len(found.errors)
    totals = f"{counted(len(found.errors), 'error')}, {counted(warnings, 'warning')}"
    if found.acknowledged:
        totals = f"{totals}, {len(found.acknowledged)} acknowledged"
    return f"{totals}."


def _failures(failures: Iterable[Failure], named: Named) -> Iterator[str]:
    """Yield the table of what happens if a step fails, and what each failure leaves behind."""
    rows: list[Sequence[str]] = [
        ("", "if this step fails", "the stack becomes", "answers", "left behind")
    ]
    # Failures after each other that end in the same way are one row.
    groups = [list(group) for _, group in groupby(failures, _end)]
    for group in groups:
        rows.append(_row_of_failures(group, named))
    yield from aligned(rows)

    for group in groups:
        leftovers = group[0].leftovers
        if leftovers:
            names = leftover_names(leftovers, named)
            yield from wrapped(f"  left behind by {_origin(group, named)}: {names}")


def _row_of_failures(group: Sequence[Failure], named: Named) -> Sequence[str]:
    """The row of failures after each other that end in the same way."""
    first = group[0]
    last = group[-1]
    if first.step == last.step:
        steps = str(first.step)
        what = _event(last, named)
    else:
        steps = f"{first.step} to {last.step}"
        what = "any of these steps"
    left = counted(len(first.leftovers), "resource") if first.leftovers else "nothing"
    return steps, what, first.status, serving_text(first.serving, named), left


def _origin(group: Sequence[Failure], named: Named) -> str:
    """The steps whose failures end in the same way, in a sentence."""
    first = group[0]
    last = group[-1]
    if first.step == last.step:
        return f"step {first.step}, {_event(last, named)}"
    return f"any of steps {first.step} to {last.step}"


def _end(failure: Failure) -> tuple[object, ...]:
    """What two failures have in common that end in the same way."""
    left = [(leftover.logical_id, leftover.type) for leftover in failure.leftovers]
    return failure.event == "reverts", failure.status, sorted(failure.serving.items()), left


def _event(failure: Failure, named: Named) -> str:
    """The resource of a step, and what happens in place of a failure."""
    return named(failure.place or failure.logical_id) + _EVENTS.get(failure.event, "")


def _facts_of_failures(found: Rehearsal, calm: Rehearsal) -> Iterator[str]:
    """What is known only after the failures."""
    named = found.named
    yield from listed("depends on AWS", map(named, found.depends_on_aws))
    missed = [note for note in found.not_simulated if note not in calm.not_simulated]
    yield from listed("not simulated", map(named, shortened_notes(missed)))

    acknowledged = []
    for problem in found.acknowledged:
        place = found.place_of(problem)
        acknowledged.append(named(f"{place} ({problem.severity}[{problem.code}])"))
    for pattern in found.unused_acknowledgements:
        acknowledged.append(f"{pattern} matches no problem; remove it")
    yield from listed("acknowledged", acknowledged)
