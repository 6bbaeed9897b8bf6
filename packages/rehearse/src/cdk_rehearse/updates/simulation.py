"""Runs a rehearsal in this process: once calmly, then with a failure at each step,
in one or two orders.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.cloud_assembly.template import Resource
from constructs_triton_core.errors import InvalidValueError, TemplateError
from constructs_triton_core.findings import Severity

from ..behaviour import CALM, Behaviour
from ..copies import Copy, Original, copy_process
from ..providers import is_custom
from ..providers.provider import without
from .analysis import Sequence
from .callers import caller_problems, calls
from .coverage import coverage
from .data_change import DataChanges
from .data_changes import data_changes
from .environments import by_environment, joined
from .failing_steps import BOTH, Event, FailingSteps
from .lost_data import lost_data_problems
from .meanwhile import Meanwhile
from .possible_refusals import possible_refusals
from .problems import deletion_problems, failure_problems, revert_problems, update_problems
from .progress import Attempted, Calm
from .recording import Moment
from .report import GENERATED, Failure, FailureEvent, Operation, Problem, Rehearsal, RehearsedStep
from .scaling_problems import scaling_unknowns
from .trial import Trial, expect_known, opened
from .versions import NONE, Request, Version, construct_paths

Result = tuple[Failure, list[Problem]]
"""The end of a failure, and its problems."""
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
    found: Rehearsal | None = None
    for each in rehearsing(request):
        if isinstance(each, Rehearsal):
            found = each
    assert found is not None
    return found


def rehearsing(request: Request) -> Iterator[Calm | Attempted | Rehearsal]:
    """Rehearse an update as :func:`simulate`, and yield first what is known without failures, then
    each time that steps have failed, and at last the rehearsal.
    """
    parts = _with_subjects(by_environment(request))
    passes: list[_Pass] = []
    for part in parts.values():
        passes.append(_Pass(part, CALM))
        passes[-1].begin()
        if passes[-1].calm.reason:
            break
    unreached = [_compared_only(each) for each in list(parts.values())[len(passes) :]]
    calm = joined(parts, [each.calm for each in passes], unreached)
    settled = passes[0].first if len(parts) == 1 else ()
    events = sum(len(each.events) for each in passes) * request.orders
    yield Calm(calm, tuple(settled), events)

    found: list[Rehearsal] = []
    for each in passes:
        found.append((yield from _rehearsed(each)))
    yield joined(parts, found, unreached)


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
        root, _, nested = stack.partition("/")
        place = f"{nested}/{logical_id}" if nested else logical_id
        yield f"{place} in {root}, because of {' and '.join(causes)}"


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


def _rehearsed(calm: _Pass) -> Generator[Attempted, None, Rehearsal]:
    """Let the steps of an update fail, and rehearse it under another behaviour of AWS too."""
    found = yield from calm.run()
    if calm.request.orders == 1:
        return found

    other = yield from _Pass(calm.request, OTHER).run()
    known = {_place(each) for each in found.problems}
    added = [each for each in other.problems if _place(each) not in known]
    errors: set[tuple[str, str, str]] = set()
    if any(each.severity is Severity.ERROR for each in added):
        ordered = _Pass(calm.request, replace(CALM, seed=OTHER.seed, random_order=True))
        errors = {_place(each) for each in (yield from ordered.run()).errors}
    return _compared(calm.request, found, added, errors)


def _compared(
    request: Request, found: Rehearsal, added: list[Problem], errors: set[tuple[str, str, str]]
) -> Rehearsal:
    """Add what only the other behaviour of AWS leads to; it is a warning,
    unless the order alone leads to these errors.
    """
    marked = [replace(each, message=f"depending on AWS: {each.message}") for each in added]
    problems = [
        each if _place(each) in errors else replace(each, severity=Severity.WARNING)
        for each in marked
    ]
    notes = [f"what AWS does not document: {each.path} ({each.code})" for each in added]
    depends = (*_redeployments(request, found.steps), *notes)
    return replace(found, problems=(*found.problems, *problems), depends_on_aws=depends)


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
            if BOTH not in each.serving.values() and properties[:1] != properties[1:]:
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
    """A rehearsal under one behaviour of AWS.

    After :meth:`begin`, ``calm`` is the rehearsal without failures and ``events`` is what can fail.
    ``first`` has the problems of ``calm`` that come before those of failures, ``last`` the others.
    """

    request: Request
    behaviour: Behaviour
    calm: Rehearsal = field(default_factory=lambda: Rehearsal({}))
    first: tuple[Problem, ...] = ()
    last: tuple[Problem, ...] = ()
    events: tuple[Event, ...] = ()
    _is_begun: bool = False

    def begin(self) -> None:
        """Deploy NEW without failures, OLD again, NEW again, and delete it."""
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
                f"{what} {', '.join(map(_without_stack, names))}"
                for what, names in trial.account.not_simulated.items()
            ]
        changes = data_changes(old, new)
        resources, simulated = coverage(old if new == NONE else new, trial.account.not_simulated)
        declared = {name for _, name in (*_declared(old), *_declared(new))}
        self.first = _unique(
            *lost_data_problems(changes),
            *update_problems(calm, declared, is_deletion=new == NONE, fleets=self.request.fleets),
            *possible_refusals(old, new),
            *(each for each in noticed if each.path),
        )
        self.last = () if deletion is None else tuple(deletion_problems(deletion, declared))
        self.calm = Rehearsal(
            status=calm.outcome.status,
            reason=calm.outcome.reason,
            steps=steps,
            replaced=calm.replaced(),
            may_be_replaced=tuple(_may_be_replaced(changes)),
            instances=calm.instances(),
            callers=tuple(each.message for each in noticed),
            leftovers=calm.outcome.leftovers,
            way_back=_operation(way_back),
            deletion=_operation(deletion),
            not_simulated=(
                *opaque,
                *scaling_unknowns(calm.outcome),
                *_not_simulated(self.request, calm),
            ),
            problems=_unique(*self.first, *self.last),
            resources=resources,
            simulated=simulated,
            construct_paths=construct_paths(old, new),
            meanwhile=tuple(each.step.subject for each in meanwhile.moments),
        )
        if self.request.failures == "each":
            self.events = tuple(_events(steps, answers=self.behaviour == CALM))
        self._is_begun = True

    def run(self) -> Generator[Attempted, None, Rehearsal]:
        """Let each step fail too, and return the rehearsal."""
        if not self._is_begun:
            self.begin()
        results: dict[int, Result] = {}
        if self.events:
            for index, result in self._results():
                results[index] = result
                yield Attempted()
        found = [results[event.index] for event in self.events if event.index in results]
        failures = sorted((each for each, _ in found), key=lambda each: (each.step, each.event))
        problems = chain.from_iterable(each for _, each in found)
        missed = [
            f"the failure of step {event.step.number}, {event.step.logical_id}, which a second "
            "deployment did not reach"
            for event in self.events
            if event.index not in results
        ]
        return replace(
            self.calm,
            failures=tuple(failures),
            not_simulated=(*missed, *self.calm.not_simulated),
            problems=_unique(*self.first, *problems, *self.last),
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

    def _results(self) -> Iterator[tuple[int, Result]]:
        """Deploy NEW in a copy of this process, which lets each step fail in another one."""
        with (
            tempfile.TemporaryDirectory(prefix="rehearsal-") as folder,
            self._prepared() as meanwhile,
        ):
            side = meanwhile.trial.account.copy(lambda: copy_process("in the update", folder))
            if isinstance(side, Original):
                with side:
                    self._let_fail(meanwhile, side, folder)
            assert isinstance(side, Copy)  # a copy has ended
            try:
                while (answer := side.receive()) is not None:
                    yield answer
                side.forget()
            finally:
                side.end()

    def _let_fail(self, meanwhile: Meanwhile, original: Original, folder: str) -> None:
        """Deploy NEW, and send the result of each event; the last answer is ``None``."""
        trial = meanwhile.trial
        trial.set_fleets(self.request.fleets)
        failing = FailingSteps(
            trial, self.events, folder, lambda index, result: original.send((index, result))
        )
        with failing:
            outcome = trial.deploy(self.request.new, self.request.old)
            if failing.event is not None:
                failing.answer(_result(Sequence(outcome, meanwhile.last), failing.event))
        original.send(None)


def _result(sequence: Sequence, event: Event) -> Result:
    find = revert_problems if event.kind == "reverts" else failure_problems
    problems = list(find(sequence, event.step.place, event.step.stack))
    return _failure(event.step, sequence, event.kind), problems


def _events(steps: tuple[RehearsedStep, ...], *, answers: bool) -> Iterator[Event]:
    """Each step that can fail, then what can happen in place of a failure.

    With ``answers``, a new custom resource also answers FAILED. After an update its physical ID
    stays the same, whether the response is lost or says FAILED.
    """
    changing = [each for each in steps if not each.is_cleanup]
    created = [each for each in changing if each.action == "create" and answers]
    custom = [each for each in created if is_custom(each.type)]
    places: list[tuple[RehearsedStep, FailureEvent]] = [
        *((each, "fails") for each in changing),
        *((each, "answers FAILED") for each in custom),
        *((each, "reverts") for each in changing if _is_update(each)),
    ]
    for index, (step, kind) in enumerate(places):
        yield Event(index, step, kind)


def _is_update(step: RehearsedStep) -> bool:
    """Whether a step gives an endpoint another configuration,
    as the creation of an adopted one does too.
    """
    is_update = step.action == "update" or step.type == ADOPTED_TYPE
    return is_update and step.type in ENDPOINT_TYPES and BOTH in step.serving.values()


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
    return Failure(step.number, step.logical_id, event, *end, place=step.place)


def _without_stack(name: str) -> str:
    """The logical ID of ``<stack>/<logical ID>``; a sentence stays as it is."""
    return name if " " in name else name.rpartition("/")[2]


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
