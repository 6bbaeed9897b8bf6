"""Runs a rehearsal in this process: once calmly, then with a failure at each step,
in one or two orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Severity

from ..behaviour import CALM, Behaviour
from ..providers.provider import without
from .data_changes import data_changes
from .environments import by_environment, joined
from .failing_steps import BOTH
from .lost_data import lost_data_problems
from .passes import Pass, declared_resources, may_be_replaced, prepared
from .progress import Calm, Notify, ignore
from .report import GENERATED, Problem, Rehearsal, RehearsedStep
from .trial import expect_known
from .versions import Request, construct_paths

OTHER = Behaviour(
    seed=1,
    random_order=True,
    updates_replaced_on_rollback=False,
    component_update_resets_copies=True,
    looks_up_alarms_at_create=True,
    updates_with_the_same_config=True,
)
"""What AWS may do instead, where it documents nothing."""


def simulate(request: Request, notify: Notify = ignore) -> Rehearsal:
    """Rehearse an update; raises ``TemplateError`` if OLD cannot be deployed.

    The environments are rehearsed after each other. As ``cdk deploy --all``, it stops at the first
    failure.

    Args:
        request: The update.
        notify: Called with what is known before the end: each change, the rehearsal without
            failures, and then each failure.
    """
    parts = _with_subjects(by_environment(request))
    passes: list[Pass] = []
    with ExitStack() as running:
        for part in parts.values():
            passes.append(running.enter_context(Pass(part, CALM, notify)))
            passes[-1].begin()
            if passes[-1].calm.reason:
                break
        unreached = [_compared_only(each) for each in list(parts.values())[len(passes) :]]
        calm = joined(parts, [each.calm for each in passes], unreached)
        notify(Calm(calm, sum(len(each.events) for each in passes) * request.orders))

        found = [_rehearsed(each) for each in passes]
    return joined(parts, found, unreached)


def _compared_only(request: Request) -> Rehearsal:
    """What is known of an environment that the update does not reach."""
    changes = data_changes(request.old, request.new)
    return Rehearsal(
        status={},
        problems=tuple(lost_data_problems(changes)),
        may_be_replaced=tuple(may_be_replaced(changes)),
        construct_paths=construct_paths(request.old, request.new),
    )


def _with_subjects(parts: dict[str, Request]) -> dict[str, Request]:
    """Give each environment the fleets and events that it has;
    ``InvalidValueError`` if none has one.
    """
    whole = next(iter(parts.values()))
    if len(parts) == 1 or not (whole.fleets or whole.meanwhile):
        return parts

    known: dict[str, str] = {}
    refusals: dict[str, InvalidValueError] = {}
    chosen: dict[str, Request] = {}
    for environment, part in parts.items():
        events: list[str] = []
        with prepared(replace(part, fleets={}, meanwhile=()), CALM) as meanwhile:
            present = meanwhile.trial.endpoints()
            for event in part.meanwhile:
                refusal = meanwhile.refusal(event)
                if refusal is None:
                    events.append(event)
                else:
                    refusals[event] = refusal
        known |= present
        fleets = _fleets_of(environment, whole, present)
        chosen[environment] = replace(part, fleets=fleets, meanwhile=tuple(events))

    expect_known((name.partition(" (aws://")[0] for name in whole.fleets), known)
    possible = {event for part in chosen.values() for event in part.meanwhile}
    for event in whole.meanwhile:
        if event not in possible:
            raise refusals[event]
    return chosen


def _fleets_of(environment: str, whole: Request, present: Mapping[str, str]) -> dict[str, int]:
    """Return the fleets of a request whose endpoints an environment has, by their names there.

    ``present`` has the endpoints of the environment: one can be named by its key or its value.
    """
    fleets = {}
    for name, count in whole.fleets.items():
        own_name = name.removesuffix(f" ({environment})")
        if own_name in present or own_name in present.values():
            fleets[own_name] = count
    return fleets


def _rehearsed(calm: Pass) -> Rehearsal:
    """Let the steps of an update fail, and rehearse it under another behaviour of AWS too."""
    request, notify = calm.request, calm.notify
    found = calm.run()
    if request.orders == 1:
        return found

    with Pass(request, OTHER, notify) as other:
        differing = other.run()
    known = {_place(each) for each in found.problems}
    added = [each for each in differing.problems if _place(each) not in known]
    errors: set[tuple[str, str, str]] = set()
    if any(each.severity is Severity.ERROR for each in added):
        behaviour = replace(CALM, seed=OTHER.seed, random_order=True)
        with Pass(request, behaviour, notify) as ordered:
            errors = {_place(each) for each in ordered.run().errors}
    return _compared(request, found, added, errors)


def _compared(
    request: Request, found: Rehearsal, added: list[Problem], errors: set[tuple[str, str, str]]
) -> Rehearsal:
    """Add the problems found only under AWS's other behaviour.

    Each is a warning, unless the order alone causes it; ``errors`` has the places of these.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    for problem in added:
        severity = problem.severity if _place(problem) in errors else Severity.WARNING
        message = f"depending on AWS: {problem.message}"
        problems.append(replace(problem, message=message, severity=severity))
        notes.append(f"what AWS does not document: {problem.path} ({problem.code})")
    depends = (*_redeployments(request, found.steps), *notes)
    return replace(found, problems=(*found.problems, *problems), depends_on_aws=depends)


def _redeployments(request: Request, steps: tuple[RehearsedStep, ...]) -> Iterator[str]:
    """The updates of endpoints whose configuration stays the same,
    unless only their tags change.
    """
    old = declared_resources(request.old)
    new = declared_resources(request.new)
    for step in steps:
        if step.type not in ENDPOINT_TYPES or step.action != "update" or step.is_cleanup:
            continue
        place = (step.stack, step.logical_id)
        properties = [
            without(found[place].properties, "Tags") for found in (old, new) if place in found
        ]
        is_changed = properties[:1] != properties[1:]
        if is_changed and BOTH not in step.serving.values():
            yield (
                f"whether step {step.number}, {step.logical_id}, starts new instances for the same "
                "configuration"
            )


def _place(problem: Problem) -> tuple[str, str, str]:
    """Code, stack and place without the random end of a generated name,
    which differs from account to account.
    """
    return problem.code, GENERATED.sub("", problem.stack), GENERATED.sub("", problem.path)
