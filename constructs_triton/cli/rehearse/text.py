"""The text of a rehearsal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constructs_triton.rehearsal.updates.report import Failure, Operation, Rehearsal, RehearsedStep

__all__ = ["report_lines"]

_READS = {None: "-", True: "yes", False: "NO"}


def report_lines(found: Rehearsal) -> Iterator[str]:
    """Yield the lines of a rehearsal."""
    yield from _summary(found)
    if found.steps:
        yield ""
        yield from _steps(found)
    for problem in found.problems:
        yield ""
        yield from str(problem).split("\n")
    if found.failures:
        yield ""
        yield from _failures(found.failures)
    yield ""
    yield from _facts(found)
    warnings = len(found.problems) - len(found.errors)
    yield f"{_counted(len(found.errors), 'error')}, {_counted(warnings, 'warning')}."


def _summary(found: Rehearsal) -> Iterator[str]:
    changed = len({(step.stack, step.logical_id) for step in found.steps})
    counts = f"{_counted(changed, 'resource')} changed, {len(found.replaced)} replaced"
    stacks = ", ".join(f"{name} {status}" for name, status in found.status.items())
    yield f"{stacks or 'nothing to do'}: {counts}. Simulated, not AWS."
    if found.reason:
        yield f"reason: {found.reason}"


def _steps(found: Rehearsal) -> Iterator[str]:
    several = len(found.status) > 1
    rows: list[Sequence[str]] = [("", "step", "what answers while it runs", "may read v1", "may read v2")]
    for step in found.steps:
        place = f"{step.stack}/{step.logical_id}" if several else step.logical_id
        what = f"{step.action} {step.type.removeprefix('AWS::')} {place}"
        rows.append(
            (
                str(step.number),
                what,
                _serving(step.serving),
                _READS[step.may_read_old],
                _READS[step.may_read_new],
            )
        )
    aligned = list(_aligned(rows))
    yield aligned[0]
    boundary = _boundary(found.steps)
    for step, line in zip(found.steps, aligned[1:], strict=True):
        if step.number == boundary:
            yield "    -- cleanup: CloudFormation does not undo what follows --"
        yield line


def _boundary(steps: Iterable[RehearsedStep]) -> int | None:
    return next((step.number for step in steps if step.is_cleanup), None)


def _failures(failures: Iterable[Failure]) -> Iterator[str]:
    rows: list[Sequence[str]] = [("", "if this step fails", "the stack becomes", "answers", "left behind")]
    for each in failures:
        event = f"{each.logical_id} (SageMaker reverts)" if each.event == "reverts" else each.logical_id
        left = ", ".join(f"{left.type.removeprefix('AWS::')} {left.logical_id}" for left in each.leftovers)
        rows.append((str(each.step), event, each.status, _serving(each.serving), left or "nothing"))
    yield from _aligned(rows)


def _facts(found: Rehearsal) -> Iterator[str]:
    yield from _listed("callers", found.callers or ("nothing changes: the same endpoints, the same names",))
    yield from _listed("instances", _instances(found))
    yield from _listed("way back", _operations(found))
    yield from _listed("depends on AWS", found.depends_on_aws)
    yield from _listed("not simulated", found.not_simulated)


def _instances(found: Rehearsal) -> Iterator[str]:
    peaks: dict[str, int] = {}
    for each in found.instances:
        kind = f" {each.instance_type}" if each.instance_type else ""
        yield f"{each.endpoint}: {each.before} before, {each.peak} at most, {each.after} after{kind}"
        peaks[each.instance_type] = peaks.get(each.instance_type, 0) + each.peak
    for kind, count in peaks.items():
        if kind and count:
            yield f'the quota "{kind} for endpoint usage" must be at least {count}'


def _operations(found: Rehearsal) -> Iterator[str]:
    boundary = found.point_of_no_return
    if boundary is not None and found.way_back is not None:
        yield f"until step {boundary - 1}, CloudFormation rolls back by itself"
    if found.way_back is not None:
        yield f"deploying OLD again afterwards {_result(found.way_back)}"
    if found.deletion is not None:
        left = ", ".join(each.logical_id for each in found.deletion.leftovers)
        yield f"deleting NEW later {_result(found.deletion)}{f', and leaves {left}' if left else ''}"


def _result(operation: Operation) -> str:
    return "works" if operation.succeeds else f"fails: {operation.status}, {operation.reason}"


def _serving(serving: Mapping[str, str]) -> str:
    if len(set(serving.values())) == 1:
        return next(iter(serving.values()))
    return ", ".join(f"{name} {version}" for name, version in serving.items()) or "-"


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield f"  {'' if index else title:<15} {line}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
