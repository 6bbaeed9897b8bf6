"""What a pass reports of its deployments without failures: their problems, and the rehearsal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .analysis import Sequence
from .calm_deployments import CalmDeployments
from .coverage import coverage
from .data_change import DataChanges
from .data_changes import data_changes
from .drift_problems import drift_problems
from .lost_data import lost_data_problems
from .possible_refusals import possible_refusals
from .problems import deletion_problems, update_problems
from .report import Operation, Problem, Rehearsal
from .scaling_problems import scaling_unknowns
from .versions import NONE, Request, construct_paths, declared_resources

__all__ = ["CalmReport", "calm_report", "may_be_replaced", "unique"]


@dataclass(frozen=True)
class CalmReport:
    """The rehearsal without failures, and its problems in two parts.

    A rehearsal with failures lists their problems after ``of_update`` and before ``of_deletion``.
    """

    rehearsal: Rehearsal
    of_update: tuple[Problem, ...]
    of_deletion: tuple[Problem, ...]


def calm_report(request: Request, seen: CalmDeployments) -> CalmReport:
    """Return the report of the deployments without failures."""
    old, new = request.old, request.new
    changes = data_changes(old, new)
    declared = {logical_id for _, logical_id in declared_resources(old, new)}

    of_update = unique(
        *lost_data_problems(changes),
        *update_problems(seen.update, declared, is_deletion=new == NONE, fleets=request.fleets),
        *possible_refusals(old, new),
        *drift_problems(request, seen.steps),
        *(problem for problem in seen.callers if problem.path),
    )
    of_deletion: tuple[Problem, ...] = ()
    if seen.deletion is not None:
        of_deletion = tuple(deletion_problems(seen.deletion, declared))

    problems = unique(*of_update, *of_deletion)
    return CalmReport(_rehearsal(request, seen, changes, problems), of_update, of_deletion)


def _rehearsal(
    request: Request, seen: CalmDeployments, changes: DataChanges, problems: tuple[Problem, ...]
) -> Rehearsal:
    """Return the rehearsal without failures."""
    old, new = request.old, request.new
    outcome = seen.update.outcome
    resources, simulated = coverage(old if new == NONE else new, seen.not_simulated)
    return Rehearsal(
        status=outcome.status,
        reason=outcome.reason,
        steps=seen.steps,
        replaced=seen.update.replaced(),
        may_be_replaced=tuple(may_be_replaced(changes)),
        instances=seen.update.instances(),
        callers=tuple(problem.message for problem in seen.callers),
        leftovers=outcome.leftovers,
        way_back=_operation(seen.way_back),
        deletion=_operation(seen.deletion),
        not_simulated=(
            *_noted(seen.not_simulated),
            *scaling_unknowns(outcome),
            *_not_simulated(request, seen.update),
            *seen.not_compared,
        ),
        problems=problems,
        resources=resources,
        simulated=simulated,
        construct_paths=construct_paths(old, new),
        meanwhile=seen.meanwhile,
    )


def unique(*problems: Problem) -> tuple[Problem, ...]:
    """Return the first problem of each code and place."""
    found: dict[tuple[str, str, str], Problem] = {}
    for problem in problems:
        found.setdefault((problem.code, problem.stack, problem.path), problem)
    return tuple(found.values())


def may_be_replaced(found: DataChanges) -> Iterator[str]:
    """Name each resource without data that CloudFormation may replace, with the causes."""
    for stack, logical_id, causes in found.may_be_replaced:
        root, _, nested = stack.partition("/")
        place = f"{nested}/{logical_id}" if nested else logical_id
        yield f"{place} in {root}, because of {' and '.join(causes)}"


def _operation(sequence: Sequence | None) -> Operation | None:
    """Return the end of a further operation; ``None`` if it did not take place."""
    if sequence is None:
        return None
    outcome = sequence.outcome
    return Operation(outcome.last_status, outcome.reason, outcome.leftovers)


def _noted(not_simulated: Mapping[str, list[str]]) -> Iterator[str]:
    """Name what the account noted, without the stacks."""
    for what, names in not_simulated.items():
        listed = ", ".join(_without_stack(name) for name in names)
        yield f"{what} {listed}"


def _without_stack(name: str) -> str:
    """The logical ID of ``<stack>/<logical ID>``; a sentence stays as it is."""
    return name if " " in name else name.rpartition("/")[2]


def _not_simulated(request: Request, update: Sequence) -> Iterator[str]:
    """What no rehearsal simulates; of endpoints only if there are any."""
    moments = (update.before, *update.outcome.moments)
    has_endpoints = any(moment is not None and moment.serving for moment in moments)
    if not (request.old.has_assets and request.new.has_assets):
        what = "functions and models" if has_endpoints else "functions"
        yield f"{what}, which a template alone does not contain; who may read what"
    of_endpoints = "the start of Triton, the capacity of instance types, " if has_endpoints else ""
    yield f"{of_endpoints}the time that steps take"
