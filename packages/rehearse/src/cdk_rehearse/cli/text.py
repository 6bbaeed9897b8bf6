"""The text of a rehearsal. It names constructs by their paths; ``--json`` has the logical IDs."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from cdk_rehearse.updates.lost_data import DATA_CODES, LOSES_DATA

if TYPE_CHECKING:
    from cdk_rehearse.updates.report import Failure, Leftover, Operation, Problem, Rehearsal

_READS = {None: "-", True: "yes", False: "NO"}
_CLEANUP = "cleanup: CloudFormation does not undo what follows"
_NO_CALLER = "nothing changes: the same endpoints, the same names"
_ROLLBACK = "the next step fails; CloudFormation rolls back"
_EVENTS = {"reverts": " (SageMaker reverts)", "answers FAILED": " (its function answers FAILED)"}
_WIDTH = 84
#: Of more names than these, only the first are printed.
_MANY = 6
_TYPE = re.compile(r"AWS::(\w+)::\w+ ")
"""The beginning of a note about resources of one type, with its service."""
Named = Callable[[str], str]
"""Writes the paths of constructs in place of logical IDs."""


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
    named = found.named
    yield from _coverage(found)
    yield from _summary(found, named)
    yield from _listed("meanwhile", map(named, found.meanwhile))
    yield from _problems(found, [each for each in found.problems if each.code in DATA_CODES])
    if found.steps:
        yield ""
        yield from _steps(found, named)
    yield from _problems(found, [each for each in found.problems if each.code not in DATA_CODES])
    yield ""
    yield from _facts(found, named)


def failure_lines(found: Rehearsal, calm: Rehearsal) -> Iterator[str]:
    """Yield the lines that follow those of ``calm``: what happens if a step fails, what depends on
    AWS, and how many problems there are.
    """
    if found.failures:
        yield ""
        yield from _failures(found.failures, found.named)
    printed = {(each.code, each.stack, each.path) for each in calm.problems}
    added = [each for each in found.problems if (each.code, each.stack, each.path) not in printed]
    yield from _problems(found, added)

    facts = list(_facts_of_failures(found, calm))
    if facts and (found.failures or added):
        yield ""
    yield from facts
    if found.failures or added:
        yield ""
    warnings = len(found.problems) - len(found.errors)
    known = f", {len(found.acknowledged)} acknowledged" if found.acknowledged else ""
    yield f"{_counted(len(found.errors), 'error')}, {_counted(warnings, 'warning')}{known}."


def coverage_sentence(found: Rehearsal) -> str:
    """Return how many resources are simulated, and how many are only compared."""
    simulated = found.simulated
    others = found.resources - found.simulated
    verb = "is" if 1 in (simulated, found.resources) else "are"
    if not others:
        return f"{simulated} of {_counted(found.resources, 'resource')} {verb} simulated"
    compared = "is compared by its" if others == 1 else "are compared by their"
    return (
        f"{simulated} of {_counted(found.resources, 'resource')} {verb} simulated, "
        f"{others} {compared} schema"
    )


def _coverage(found: Rehearsal) -> Iterator[str]:
    if found.resources:
        yield f"{coverage_sentence(found)}."


def _summary(found: Rehearsal, named: Named) -> Iterator[str]:
    changed = len({(step.stack, step.place) for step in found.steps})
    counts = f"{_counted(changed, 'resource')} changed, {len(found.replaced)} replaced"
    stacks = ", ".join(f"{name} {status}" for name, status in found.status.items())
    yield f"{stacks or 'nothing to do'}: {counts}. Simulated, not AWS."
    if found.reason and not any(found.reason in each.message for each in found.problems):
        yield from _wrapped(f"reason: {named(found.reason)}")


def _problems(found: Rehearsal, problems: Iterable[Problem]) -> Iterator[str]:
    """Yield the problems; those that differ only in their places are one, with all places."""
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for problem in problems:
        same = (problem.severity, problem.code, problem.message, problem.hint)
        groups.setdefault(same, []).append(problem)
    for group in groups.values():
        yield ""
        places = _some([found.place_of(each) for each in group])
        for line in str(replace(group[0], path=places)).split("\n"):
            yield from _wrapped(found.named(line))
        lines = [f"{each.place.file}:{each.place.line}" for each in group if each.place]
        if lines:
            yield f"    at {_some(list(dict.fromkeys(lines)))}"


def _some(names: Sequence[str]) -> str:
    """The names, of many only the first and the number of the others."""
    if len(names) <= _MANY:
        return ", ".join(names)
    return f"{', '.join(names[: _MANY - 1])} and {len(names) - _MANY + 1} more"


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
                _short(step.type),
                f"{step.stack}/{path}" if several else path,
                _serving(step.serving, named),
                _READS[step.may_read_old],
                _READS[step.may_read_new],
            )
        )
    aligned = list(_aligned(rows))
    yield aligned[0]
    boundary = found.point_of_no_return
    for step, line in zip(found.steps, aligned[1:], strict=True):
        if step.number == boundary:
            yield f"    -- {(_ROLLBACK if 'ROLLBACK' in found.status[step.stack] else _CLEANUP)} --"
        yield line


def _failures(failures: Iterable[Failure], named: Named) -> Iterator[str]:
    """Yield the table of what happens if a step fails, and what each failure leaves behind."""
    rows: list[Sequence[str]] = [
        ("", "if this step fails", "the stack becomes", "answers", "left behind")
    ]
    # Failures after each other that end in the same way.
    groups = [list(group) for _, group in groupby(failures, _end)]
    for group in groups:
        first, last = group[0], group[-1]
        is_one = first.step == last.step
        steps = str(first.step) if is_one else f"{first.step} to {last.step}"
        what = _event(last, named) if is_one else "any of these steps"
        left = _counted(len(first.leftovers), "resource") if first.leftovers else "nothing"
        rows.append((steps, what, first.status, _serving(first.serving, named), left))
    yield from _aligned(rows)
    for group in groups:
        if group[0].leftovers:
            yield from _wrapped(f"  left behind by {_origin(group, named)}")


def _origin(group: Sequence[Failure], named: Named) -> str:
    first, last = group[0], group[-1]
    steps = f"step {first.step}, {_event(last, named)}"
    if first.step != last.step:
        steps = f"any of steps {first.step} to {last.step}"
    return f"{steps}: {_list_of(first.leftovers, named)}"


def _end(failure: Failure) -> tuple[object, ...]:
    left = [(each.logical_id, each.type) for each in failure.leftovers]
    return failure.event == "reverts", failure.status, sorted(failure.serving.items()), left


def _list_of(leftovers: Iterable[Leftover], named: Named) -> str:
    counts = Counter(f"{named(each.logical_id)} ({_short(each.type)})" for each in leftovers)
    return ", ".join(
        name if count == 1 else f"{name} in {count} stacks" for name, count in counts.items()
    )


def _event(failure: Failure, named: Named) -> str:
    return named(failure.place or failure.logical_id) + _EVENTS.get(failure.event, "")


def _facts(found: Rehearsal, named: Named) -> Iterator[str]:
    """Yield the labelled lines about callers, instances, the way back and what is not simulated."""
    endpoints = found.instances or [step for step in found.steps if step.serving]
    yield from _listed("callers", map(named, found.callers or ((_NO_CALLER,) if endpoints else ())))
    yield from _listed("may be replaced", map(named, found.may_be_replaced))
    yield from _listed("left behind", [_list_of(found.leftovers, named)] if found.leftovers else [])
    yield from _listed("instances", map(named, _instances(found)))
    yield from _listed("way back", _operations(found, named))
    yield from _listed("not simulated", map(named, shortened_notes(found.not_simulated)))
    yield from _listed("synth warns", found.synthesis_warnings)


def _facts_of_failures(found: Rehearsal, calm: Rehearsal) -> Iterator[str]:
    """What is known only after the failures."""
    named = found.named
    yield from _listed("depends on AWS", map(named, found.depends_on_aws))
    missed = [each for each in found.not_simulated if each not in calm.not_simulated]
    yield from _listed("not simulated", map(named, shortened_notes(missed)))
    known = (
        f"{found.place_of(each)} ({each.severity}[{each.code}])" for each in found.acknowledged
    )
    unused = (f"{each} matches no problem; remove it" for each in found.unused_acknowledgements)
    yield from _listed("acknowledged", [*map(named, known), *unused])


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
        for kind, count in instances.peak_by_type.items():
            if not kind:
                continue
            place = (kind, instances.environment)
            peaks[place] += count
            if instances.peak > instances.before:
                growing.add(place)

    for (kind, environment), count in peaks.items():
        if (kind, environment) in growing:
            where = f" in {environment}" if environment else ""
            yield f'the quota "{kind} for endpoint usage"{where} must be at least {count}'


def _operations(found: Rehearsal, named: Named) -> Iterator[str]:
    """Yield what deploying OLD again, and deleting NEW, would do."""
    boundary = found.point_of_no_return
    if boundary is not None and boundary > 1 and found.way_back is not None:
        yield f"until step {boundary - 1}, CloudFormation rolls back by itself"
    if found.way_back is not None:
        is_lost = any(each.code in LOSES_DATA for each in (*found.problems, *found.acknowledged))
        end = ", but brings no data back" if is_lost and found.way_back.succeeds else ""
        yield f"deploying OLD again afterwards {_result(found.way_back, named)}{end}"
    if found.deletion is not None:
        left = _list_of(found.deletion.leftovers, named)
        yield (
            f"deleting NEW later {_result(found.deletion, named)}"
            f"{f', and leaves {left}' if left else ''}"
        )


def _result(operation: Operation, named: Named) -> str:
    return (
        "works" if operation.succeeds else f"fails: {operation.status}, {named(operation.reason)}"
    )


def shortened_notes(notes: Sequence[str]) -> Iterator[str]:
    """Name only the services of the types that are not simulated if there
    are more than four types.
    """
    services = [match[1] for match in map(_TYPE.match, notes) if match]
    if len(services) > 4:
        listed = ", ".join(dict.fromkeys(services))
        yield f"what resources of {len(services)} types do ({listed}); --json lists them"
    for note in notes:
        if len(services) < 5 or not _TYPE.match(note):
            names = note.split(", ")
            yield note if len(names) <= _MANY else f"{_some(names)}; --json lists them"


def _short(type: str) -> str:
    """The type without the service."""
    return type.rpartition("::")[2]


def _wrapped(line: str, indent: int = 4) -> list[str]:
    return textwrap.wrap(
        line, _WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _serving(serving: Mapping[str, str], named: Named) -> str:
    if len(set(serving.values())) == 1:
        return next(iter(serving.values()))
    return "; ".join(f"{named(name)} {version}" for name, version in serving.items()) or "-"


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield from _wrapped(f"  {'' if index else title:<15} {line}", 20)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows as a table, without columns that say nothing."""
    columns = [column for column in zip(*rows, strict=True) if set(column[1:]) != {"-"}]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        yield (
            "  "
            + "  ".join(
                f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)
            ).rstrip()
        )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
