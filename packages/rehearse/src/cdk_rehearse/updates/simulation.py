"""Runs a rehearsal in this process: once calmly, then with a failure at each step,
in one or two orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.cloud_assembly.template import Resource
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Severity

from ..behaviour import CALM, Behaviour
from ..providers.provider import without
from .calm_report import may_be_replaced
from .data_changes import data_changes
from .environments import by_environment, joined
from .failing_steps import BOTH
from .lost_data import lost_data_problems
from .meanwhile import prepared
from .passes import Pass, calm_pass
from .progress import Calm, Notify, ignore
from .report import GENERATED, Problem, Rehearsal, RehearsedStep
from .trial import expect_known
from .versions import Request, construct_paths, declared_resources

OTHER = Behaviour(
    seed=1,
    random_order=True,
    updates_replaced_on_rollback=False,
    component_update_resets_copies=True,
    looks_up_alarms_at_create=True,
    updates_with_the_same_config=True,
)
"""What AWS may do instead, where it documents nothing."""
_Place = tuple[str, str, str]
"""Code, stack and place of a problem."""


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
            passes.append(running.enter_context(calm_pass(part, CALM, notify)))
            if passes[-1].calm.reason:
                break

        reached = [one_pass.calm for one_pass in passes]
        unreached = [_compared_only(part) for part in list(parts.values())[len(passes) :]]
        failures = sum(len(one_pass.events) for one_pass in passes) * request.orders
        notify(Calm(joined(parts, reached, unreached), failures))

        found = [_rehearsed(one_pass) for one_pass in passes]
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
    request = calm.request
    found = calm.with_failures()
    if request.orders == 1:
        return found

    known = {_place(problem) for problem in found.problems}
    added = []
    for problem in _rehearsed_under(OTHER, request, calm.notify).problems:
        if _place(problem) not in known:
            added.append(problem)

    # A third pass, under CALM in the other order, shows whether the order alone causes an error.
    errors: set[_Place] = set()
    if any(problem.severity is Severity.ERROR for problem in added):
        other_order = replace(CALM, seed=OTHER.seed, random_order=True)
        ordered = _rehearsed_under(other_order, request, calm.notify)
        errors = {_place(problem) for problem in ordered.errors}
    return _compared(request, found, added, errors)


def _rehearsed_under(behaviour: Behaviour, request: Request, notify: Notify) -> Rehearsal:
    """Return a whole rehearsal under one behaviour of AWS."""
    with calm_pass(request, behaviour, notify) as calm:
        return calm.with_failures()


def _compared(
    request: Request, found: Rehearsal, added: list[Problem], errors: set[_Place]
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

    return replace(
        found,
        problems=(*found.problems, *problems),
        depends_on_aws=(*_redeployments(request, found.steps), *notes),
    )


def _redeployments(request: Request, steps: tuple[RehearsedStep, ...]) -> Iterator[str]:
    """The updates of endpoints whose configuration stays the same,
    unless only their tags change.
    """
    old = declared_resources(request.old)
    new = declared_resources(request.new)
    for step in steps:
        if step.type not in ENDPOINT_TYPES or step.action != "update" or step.is_cleanup:
            continue
        if BOTH in step.serving.values():
            continue

        place = (step.stack, step.logical_id)
        before = _without_tags(old.get(place))
        after = _without_tags(new.get(place))
        if before != after:
            yield (
                f"whether step {step.number}, {step.logical_id}, starts new instances for the same "
                "configuration"
            )


def _without_tags(resource: Resource | None) -> Mapping[str, object] | None:
    """The properties of a resource without its tags; ``None`` if a version has no such resource."""
    return None if resource is None else without(resource.properties, "Tags")


def _place(problem: Problem) -> _Place:
    """Code, stack and place without the random end of a generated name,
    which differs from account to account.
    """
    return problem.code, GENERATED.sub("", problem.stack), GENERATED.sub("", problem.path)
