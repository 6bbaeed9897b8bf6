"""The text of a rehearsal. It names constructs by their paths; ``--json`` has the logical IDs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cdk_rehearse.cli.failure_text import failure_lines
from cdk_rehearse.cli.text_parts import (
    Named,
    aligned,
    counted,
    leftover_names,
    listed,
    problem_lines,
    serving_text,
    short_type,
    shortened_notes,
    wrapped,
)
from cdk_rehearse.updates.lost_data import DATA_CODES, LOSES_DATA

if TYPE_CHECKING:
    from cdk_rehearse.updates.report import Operation, Rehearsal

_READS = {None: "-", True: "yes", False: "NO"}
_CLEANUP = "cleanup: CloudFormation does not undo what follows"
_NO_CALLER = "nothing changes in endpoints, names, inputs and outputs"
_NO_KNOWN_CHANGE = "nothing changes in endpoints and names (inputs: see not simulated)"
_ROLLBACK = "the next step fails; CloudFormation rolls back"


def report_lines(found: Rehearsal, calm: Rehearsal | None = None) -> Iterator[str]:
    """Yield the lines of a rehearsal: first those without failures, then those of failures.

    Args:
        found: The rehearsal.
        calm: What was known of it before steps failed. Default: everything.
    """
    yield from calm_lines(calm or found)
    yield from failure_lines(found, calm or found)


def calm_lines(found: Rehearsal) -> Iterator[str]:
    """Yield the lines of what happens without failures: first what the rehearsal knows, then what
    becomes of data.
    """
    of_data = [problem for problem in found.problems if problem.code in DATA_CODES]
    others = [problem for problem in found.problems if problem.code not in DATA_CODES]

    named = found.named
    yield from _coverage(found)
    yield from _summary(found, named)
    yield from listed("meanwhile", map(named, found.meanwhile))
    yield from problem_lines(found, of_data)
    if found.steps:
        yield ""
        yield from _steps(found, named)
    yield from problem_lines(found, others)
    yield ""
    yield from _facts(found, named)


def coverage_sentence(found: Rehearsal) -> str:
    """Return how many resources are simulated, and how many are only compared."""
    verb = "is" if 1 in (found.simulated, found.resources) else "are"
    resources = counted(found.resources, "resource")
    sentence = f"{found.simulated} of {resources} {verb} simulated"

    others = found.resources - found.simulated
    if others == 0:
        return sentence
    compared = "is compared by its" if others == 1 else "are compared by their"
    return f"{sentence}, {others} {compared} schema"


def _coverage(found: Rehearsal) -> Iterator[str]:
    if found.resources:
        yield f"{coverage_sentence(found)}."


def _summary(found: Rehearsal, named: Named) -> Iterator[str]:
    changed = len({(step.stack, step.place) for step in found.steps})
    counts = f"{counted(changed, 'resource')} changed, {len(found.replaced)} replaced"
    stacks = ", ".join(f"{name} {status}" for name, status in found.status.items())
    yield f"{stacks or 'nothing to do'}: {counts}. Simulated, not AWS."

    is_in_a_problem = any(found.reason in problem.message for problem in found.problems)
    if found.reason and not is_in_a_problem:
        yield from wrapped(f"reason: {named(found.reason)}")


def _steps(found: Rehearsal, named: Named) -> Iterator[str]:
    """Yield the table of the steps of an update."""
    several = len(found.status) > 1
    rows: list[Sequence[str]] = [
        ("", "step", "type", "construct", "answers", "may read v1", "may read v2")
    ]
    for step in found.steps:
        path = named(step.place)
        rows.append(
            (
                str(step.number),
                step.action,
                short_type(step.type),
                f"{step.stack}/{path}" if several else path,
                serving_text(step.serving, named),
                _READS[step.may_read_old],
                _READS[step.may_read_new],
            )
        )

    title, *lines = aligned(rows)
    yield title
    for step, line in zip(found.steps, lines, strict=True):
        if step.number == found.point_of_no_return:
            is_rollback = "ROLLBACK" in found.status[step.stack]
            yield f"    -- {_ROLLBACK if is_rollback else _CLEANUP} --"
        yield line


def _facts(found: Rehearsal, named: Named) -> Iterator[str]:
    """Yield the labelled lines about callers, instances, the way back and what is not simulated."""
    yield from listed("callers", map(named, found.callers or _unchanged_callers(found)))
    yield from listed("may be replaced", map(named, found.may_be_replaced))
    if found.leftovers:
        yield from listed("left behind", [leftover_names(found.leftovers, named)])
    yield from listed("instances", map(named, _instances(found)))
    yield from listed("way back", _operations(found, named))
    yield from listed("not simulated", map(named, shortened_notes(found.not_simulated)))
    yield from listed("synth warns", found.synthesis_warnings)


def _unchanged_callers(found: Rehearsal) -> Sequence[str]:
    """What is said of callers for whom nothing changes; nothing without endpoints."""
    has_endpoints = bool(found.instances) or any(step.serving for step in found.steps)
    if not has_endpoints:
        return []
    is_compared = not any(note.startswith("inputs and outputs of ") for note in found.not_simulated)
    return [_NO_CALLER if is_compared else _NO_KNOWN_CHANGE]


def _instances(found: Rehearsal) -> Iterator[str]:
    """Yield the instances of each endpoint, then the quotas that the update needs."""
    peaks: Counter[tuple[str, str]] = Counter()  # by instance type and environment
    growing: set[tuple[str, str]] = set()
    for instances in found.instances:
        types = f" ({instances.instance_type})" if instances.instance_type else ""
        yield (
            f"{instances.endpoint}: {instances.before} before, {instances.peak} at most, "
            f"{instances.after} after{types}"
        )
        for instance_type, count in instances.peak_by_type.items():
            if not instance_type:
                continue
            place = (instance_type, instances.environment)
            peaks[place] += count
            if instances.peak > instances.before:
                growing.add(place)

    for place, count in peaks.items():
        instance_type, environment = place
        if place in growing:
            where = f" in {environment}" if environment else ""
            yield f'the quota "{instance_type} for endpoint usage"{where} must be at least {count}'


def _operations(found: Rehearsal, named: Named) -> Iterator[str]:
    """Yield what deploying OLD again, and deleting NEW, would do."""
    boundary = found.point_of_no_return
    if boundary is not None and boundary > 1 and found.way_back is not None:
        yield f"until step {boundary - 1}, CloudFormation rolls back by itself"

    if found.way_back is not None:
        problems = (*found.problems, *found.acknowledged)
        is_lost = any(problem.code in LOSES_DATA for problem in problems)
        end = ", but brings no data back" if is_lost and found.way_back.succeeds else ""
        yield f"deploying OLD again afterwards {_result(found.way_back, named)}{end}"

    if found.deletion is not None:
        left = leftover_names(found.deletion.leftovers, named)
        end = f", and leaves {left}" if left else ""
        yield f"deleting NEW later {_result(found.deletion, named)}{end}"


def _result(operation: Operation, named: Named) -> str:
    """The end of a sentence about an operation."""
    if operation.succeeds:
        return "works"
    return f"fails: {operation.status}, {named(operation.reason)}"
