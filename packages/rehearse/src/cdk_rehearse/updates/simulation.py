"""Runs a rehearsal in this process: once calmly, then with a failure at each step,
in one or two orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.cloud_assembly.template import Resource
from constructs_triton_core.errors import InvalidValueError, TemplateError
from constructs_triton_core.findings import Severity

from ..behaviour import CALM, Behaviour
from ..providers import is_custom
from ..providers.provider import without
from ..steps import When
from .analysis import Sequence
from .callers import caller_problems, calls
from .coverage import coverage
from .data_changes import DataChanges, data_changes
from .environments import by_environment, joined
from .lost_data import lost_data_problems
from .meanwhile import Meanwhile
from .problems import deletion_problems, failure_problems, revert_problems, update_problems
from .recording import Moment
from .report import GENERATED, Failure, FailureEvent, Operation, Problem, Rehearsal, RehearsedStep
from .trial import Trial, expect_known, opened
from .versions import NONE, Request, Version, construct_paths

_BOTH = "v1, v2"
"""What serves while an endpoint gets another configuration."""
OTHER = Behaviour(
    seed=1,
    random_order=True,
    updates_replaced_on_rollback=False,
    component_update_resets_copies=True,
    looks_up_alarms_at_create=True,
    updates_with_the_same_config=True,
)
"""What AWS may do instead, where it documents nothing."""


def simulate(request: Request) -> Rehearsal:
    """Rehearse an update; raises ``TemplateError`` if OLD cannot be deployed.

    The environments are rehearsed after each other. As ``cdk deploy --all``, it stops at the first
    failure.
    """
    parts, found = _with_subjects(by_environment(request)), list[Rehearsal]()
    for each in parts.values():
        found.append(_rehearsed(each))
        if found[-1].reason:
            break
    unreached = [_compared_only(each) for each in list(parts.values())[len(found) :]]
    return joined(parts, found, unreached)


def _compared_only(request: Request) -> Rehearsal:
    """What is known of an environment that the update does not reach."""
    changes = data_changes(request.old, request.new)
    return Rehearsal(
        status={},
        problems=tuple(lost_data_problems(changes)),
        may_be_replaced=tuple(_may_be_replaced(changes)),
        construct_paths=construct_paths(request.old, request.new),
    )


def _may_be_replaced(found: DataChanges) -> Iterator[str]:
    for stack, logical_id, causes in found.may_be_replaced:
        yield f"{logical_id} in {stack}, because of {' and '.join(causes)}"


def _with_subjects(parts: dict[str, Request]) -> dict[str, Request]:
    """Give each environment the fleets and events that it has;
    ``InvalidValueError`` if none has one.
    """
    whole = next(iter(parts.values()))
    if len(parts) == 1 or not (whole.fleets or whole.meanwhile):
        return parts
    known: dict[str, str] = {}
    unknown: dict[str, InvalidValueError] = {}
    chosen = {}
    for environment, part in parts.items():
        with _Pass(replace(part, fleets={}, meanwhile=()), CALM)._prepared() as meanwhile:
            present = meanwhile.trial.endpoints()
            refused = {each: meanwhile.refusal(each) for each in part.meanwhile}
        known |= present
        events = tuple(each for each, error in refused.items() if error is None)
        unknown |= {each: error for each, error in refused.items() if error is not None}
        named = {
            name.removesuffix(f" ({environment})"): count for name, count in whole.fleets.items()
        }
        own = {name: named[name] for name in named if name in present or name in present.values()}
        chosen[environment] = replace(part, fleets=own, meanwhile=events)
    expect_known((name.partition(" (aws://")[0] for name in whole.fleets), known)
    for event in set(whole.meanwhile).difference(*(each.meanwhile for each in chosen.values())):
        raise unknown[event]
    return chosen


def _rehearsed(request: Request) -> Rehearsal:
    """Rehearse an update in one environment, under one or two behaviours of AWS."""
    found = _Pass(request, CALM).run()
    return found if request.orders == 1 else _compared(request, found, _Pass(request, OTHER).run())


def _compared(request: Request, found: Rehearsal, other: Rehearsal) -> Rehearsal:
    """Add what only the other behaviour of AWS leads to; it is a warning,
    unless the order alone does.
    """
    known = {_place(each) for each in found.problems}
    added = [each for each in other.problems if _place(each) not in known]
    marked = [replace(each, message=f"depending on AWS: {each.message}") for each in added]
    if any(each.severity is Severity.ERROR for each in added):
        ordered = _Pass(request, replace(CALM, seed=OTHER.seed, random_order=True)).run()
        errors = {_place(each) for each in ordered.errors}
        marked = [
            each if _place(each) in errors else replace(each, severity=Severity.WARNING)
            for each in marked
        ]
    notes = [f"what AWS does not document: {each.path} ({each.code})" for each in added]
    depends = (*_redeployments(request, found.steps), *notes)
    return replace(found, problems=(*found.problems, *marked), depends_on_aws=depends)


def _redeployments(request: Request, steps: tuple[RehearsedStep, ...]) -> Iterator[str]:
    """The updates of endpoints whose configuration stays the same,
    unless only their tags change.
    """
    old, new = _declared(request.old), _declared(request.new)
    for each in steps:
        if each.type in ENDPOINT_TYPES and (each.action, each.is_cleanup) == ("update", False):
            place = each.stack, each.logical_id
            properties = [
                without(found[place].properties, "Tags") for found in (old, new) if place in found
            ]
            if _BOTH not in each.serving.values() and properties[:1] != properties[1:]:
                step = f"step {each.number}, {each.logical_id},"
                yield f"whether {step} starts new instances for the same configuration"


def _declared(version: Version) -> dict[tuple[str, str], Resource]:
    """The resources of all stacks, by stack and logical ID."""
    stacks = ((stack.name, stack.template.resources.items()) for stack in version.stacks)
    return {
        (stack, logical_id): each for stack, resources in stacks for logical_id, each in resources
    }


def _place(problem: Problem) -> tuple[str, str, str]:
    """Code, stack and place without the random end of a generated name,
    which differs from account to account.
    """
    return problem.code, GENERATED.sub("", problem.stack), GENERATED.sub("", problem.path)


@dataclass
class _Pass:
    """A rehearsal under one behaviour of AWS."""

    request: Request
    behaviour: Behaviour

    def run(self) -> Rehearsal:
        old, new = self.request.old, self.request.new
        with self._prepared() as meanwhile:
            trial = meanwhile.trial
            known = calls(trial.account)
            outcome = trial.deploy(new, old)
            noticed = tuple(caller_problems(known, calls(trial.account)))
            moments = (*meanwhile.moments, *outcome.moments)
            calm = Sequence(replace(outcome, moments=moments), meanwhile.before)
            steps = self._typed(calm.steps())
            way_back, deletion = self._afterwards(trial, calm)
            opaque = [
                f"{what} {', '.join(name.rpartition('/')[2] for name in names)}"
                for what, names in trial.account.not_simulated.items()
            ]
        failures, problems = self._failures(steps)
        changes = data_changes(old, new)
        resources, simulated = coverage(old if new == NONE else new, trial.account.not_simulated)
        declared = {name for _, name in (*_declared(old), *_declared(new))}
        return Rehearsal(
            status=calm.outcome.status,
            reason=calm.outcome.reason,
            steps=steps,
            replaced=calm.replaced(),
            may_be_replaced=tuple(_may_be_replaced(changes)),
            failures=tuple(failures),
            instances=calm.instances(),
            callers=tuple(each.message for each in noticed),
            leftovers=calm.outcome.leftovers,
            way_back=_operation(way_back),
            deletion=_operation(deletion),
            not_simulated=(*opaque, *_not_simulated(self.request, calm)),
            problems=_unique(
                *lost_data_problems(changes),
                *update_problems(
                    calm, declared, is_deletion=new == NONE, fleets=self.request.fleets
                ),
                *(each for each in noticed if each.path),
                *problems,
                *(() if deletion is None else deletion_problems(deletion, declared)),
            ),
            resources=resources,
            simulated=simulated,
            construct_paths=construct_paths(old, new),
            meanwhile=tuple(each.step.subject for each in meanwhile.moments),
        )

    def _typed(self, steps: tuple[RehearsedStep, ...]) -> tuple[RehearsedStep, ...]:
        """Add the types of resources that a rollback has deleted, from the templates."""
        declared = {**_declared(self.request.old), **_declared(self.request.new)}
        return tuple(
            replace(
                each,
                type=each.type or getattr(declared.get((each.stack, each.logical_id)), "type", ""),
            )
            for each in steps
        )

    def _is_nested(self, step: RehearsedStep) -> bool:
        """Whether a step changes a resource that neither version of its stack declares itself."""
        place = (step.stack, step.logical_id)
        return place not in {**_declared(self.request.old), **_declared(self.request.new)}

    @contextmanager
    def _prepared(self) -> Iterator[Meanwhile]:
        """A trial in which OLD is deployed, the fleets have their sizes and the
        events have happened.
        """
        request = self.request
        with opened([request.old, request.new], self.behaviour) as trial:
            outcome = trial.deploy(request.old, NONE)
            if not outcome.is_complete:
                raise TemplateError(
                    f"OLD cannot be deployed in the simulated account: {outcome.reason}"
                )
            trial.set_fleets(request.fleets)
            yield Meanwhile(trial, request)

    def _afterwards(self, trial: Trial, calm: Sequence) -> tuple[Sequence | None, Sequence | None]:
        """Deploy OLD again, then NEW, and delete it."""
        old, new = self.request.old, self.request.new
        if new == NONE or not calm.outcome.is_complete:
            return None, None
        way_back = None
        if old != NONE:
            way_back = Sequence(trial.deploy(old, new), _last(calm))
            if not (way_back.outcome.is_complete and trial.deploy(new, old).is_complete):
                return way_back, None
        return way_back, Sequence(trial.deploy(NONE, new), _last(calm))

    def _failures(self, steps: tuple[RehearsedStep, ...]) -> tuple[list[Failure], list[Problem]]:
        failures, problems = list[Failure](), list[Problem]()
        if self.request.failures == "none":
            return failures, problems
        waiting = list(_events(steps, answers=self.behaviour == CALM))
        while waiting:
            with self._prepared() as meanwhile:
                trial, usual, is_clean = meanwhile.trial, meanwhile.trial.account.behaviour, True
                while waiting and is_clean:
                    step, event = waiting.pop(0)
                    trial.set_fleets(self.request.fleets)
                    behaviour = _failing(usual, step, event, trial, self._is_nested(step))
                    outcome = trial.deploy(self.request.new, self.request.old, behaviour)
                    sequence = Sequence(outcome, meanwhile.last)
                    failures.append(_failure(step, sequence, event))
                    find = revert_problems if event == "reverts" else failure_problems
                    problems += find(sequence, step.logical_id, step.stack)
                    is_clean = outcome.restored and event != "reverts" and not meanwhile.moments
        return sorted(failures, key=lambda each: (each.step, each.event)), problems


def _events(
    steps: tuple[RehearsedStep, ...], *, answers: bool
) -> Iterator[tuple[RehearsedStep, FailureEvent]]:
    """Each step that can fail, then what can happen in place of a failure.

    With ``answers``, a new custom resource also answers FAILED. After an update its physical ID
    stays the same, whether the response is lost or says FAILED.
    """
    changing = [each for each in steps if not each.is_cleanup]
    yield from ((each, "fails") for each in changing)
    created = [each for each in changing if each.action == "create" and answers]
    yield from ((each, "answers FAILED") for each in created if is_custom(each.type))
    yield from ((each, "reverts") for each in changing if _is_update(each))


def _failing(
    usual: Behaviour, step: RehearsedStep, event: FailureEvent, trial: Trial, is_nested: bool
) -> Behaviour:
    if event == "reverts":
        changed = {
            GENERATED.sub("", name) for name, serving in step.serving.items() if serving == _BOTH
        }
        reverted = [name for name in trial.endpoints() if GENERATED.sub("", name) in changed]
        return replace(usual, endpoint_update="reverts", updated_endpoints=reverted)
    when: When = "after" if event == "fails" else event
    # Another stack may have the same logical ID. The name of a nested stack differs in each run,
    # and a step has the name of the stack that it is nested in.
    name = step.logical_id if is_nested else f"{step.stack}/{step.logical_id}"
    return replace(usual, failing={**usual.failing, name: when})


def _is_update(step: RehearsedStep) -> bool:
    """Whether a step gives an endpoint another configuration,
    as the creation of an adopted one does too.
    """
    is_update = step.action == "update" or step.type == ADOPTED_TYPE
    return is_update and step.type in ENDPOINT_TYPES and _BOTH in step.serving.values()


def _last(sequence: Sequence) -> Moment | None:
    return sequence.outcome.moments[-1] if sequence.outcome.moments else sequence.before


def _operation(sequence: Sequence | None) -> Operation | None:
    if sequence is None:
        return None
    return Operation(
        sequence.outcome.last_status, sequence.outcome.reason, sequence.outcome.leftovers
    )


def _failure(step: RehearsedStep, sequence: Sequence, event: FailureEvent) -> Failure:
    outcome = sequence.outcome
    serving = sequence.serving(_last(sequence))
    end = outcome.last_status, outcome.reason, serving, outcome.leftovers
    return Failure(step.number, step.logical_id, event, *end)


def _not_simulated(request: Request, calm: Sequence) -> Iterator[str]:
    """What no rehearsal simulates; of endpoints only if there are any."""
    has_endpoints = any(each and each.serving for each in (calm.before, *calm.outcome.moments))
    if not (request.old.has_assets and request.new.has_assets):
        what = "functions and models" if has_endpoints else "functions"
        yield f"{what}, which a template alone does not contain; who may read what"
    of_endpoints = "the start of Triton, the capacity of instance types, " if has_endpoints else ""
    yield f"{of_endpoints}the time that steps take"


def _unique(*problems: Problem) -> tuple[Problem, ...]:
    """One problem for each code and place."""
    found: dict[tuple[str, str, str], Problem] = {}
    for each in problems:
        found.setdefault((each.code, each.stack, each.path), each)
    return tuple(found.values())
