"""One pass of a rehearsal, under one behaviour of AWS: the update without failures, the way back,
the deletion, and then a failure at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.cloud_assembly.template import Resource
from constructs_triton_core.errors import TemplateError
from constructs_triton_core.untrusted.drafts import temporary_folder

from ..account import copy_account
from ..behaviour import CALM, Behaviour
from ..copies import Alive, Copy, Original, copy_process
from ..providers import is_custom
from .analysis import Sequence
from .callers import caller_problems, calls
from .coverage import coverage
from .data_change import DataChanges
from .data_changes import data_changes
from .failing_steps import BOTH, FailingSteps, StepEvent
from .lost_data import lost_data_problems
from .meanwhile import Meanwhile
from .possible_refusals import possible_refusals
from .problems import deletion_problems, failure_problems, revert_problems, update_problems
from .progress import Attempted, Notify, Stepping, ignore
from .recording import Moment
from .report import Failure, FailureEvent, Operation, Problem, Rehearsal, RehearsedStep
from .scaling_problems import scaling_unknowns
from .trial import Trial, opened
from .versions import NONE, Request, Version, construct_paths

Result = tuple[Failure, list[Problem]]
"""The end of a failure, and its problems."""


@dataclass(frozen=True)
class _Seen:
    """What the deployments without failures have shown.

    ``way_back`` and ``deletion`` are ``None`` if a deployment before them was not complete.
    ``meanwhile`` is what happened before the update. ``not_simulated`` is what the account noted:
    kinds of things with ``<stack>/<logical ID>``.
    """

    update: Sequence
    steps: tuple[RehearsedStep, ...]
    callers: tuple[Problem, ...]
    way_back: Sequence | None
    deletion: Sequence | None
    meanwhile: tuple[str, ...]
    not_simulated: Mapping[str, list[str]]


@dataclass
class Pass:
    """A rehearsal under one behaviour of AWS; a context manager that ends what it started.

    After :meth:`begin`, ``calm`` is the rehearsal without failures and ``events`` is what can fail.
    ``first`` has the problems of ``calm`` that come before those of failures, ``last`` the others.
    """

    request: Request
    behaviour: Behaviour
    notify: Notify = ignore
    calm: Rehearsal = field(default_factory=lambda: Rehearsal({}))
    first: tuple[Problem, ...] = ()
    last: tuple[Problem, ...] = ()
    events: tuple[StepEvent, ...] = ()
    _is_begun: bool = False
    _saved: Copy | None = None
    _folders: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Pass:
        return self

    def __exit__(self, *_: object) -> None:
        if self._saved is not None:
            self._saved.end()
        self._folders.close()

    def begin(self) -> None:
        """Deploy NEW without failures, OLD again, NEW again, and delete it."""
        old, new = self.request.old, self.request.new
        with prepared(self.request, self.behaviour, self.notify) as meanwhile:
            # The copy waits until it is known what can fail. Before a first deployment there is
            # nothing to keep, and a later copy has read the service models that NEW needs.
            if self.request.failures == "each" and old != NONE:
                self._save(meanwhile)
            seen = self._deploy(meanwhile)

        changes = data_changes(old, new)
        declared = {name for _, name in (*declared_resources(old), *declared_resources(new))}
        self.first = _unique(
            *lost_data_problems(changes),
            *update_problems(
                seen.update, declared, is_deletion=new == NONE, fleets=self.request.fleets
            ),
            *possible_refusals(old, new),
            *(problem for problem in seen.callers if problem.path),
        )
        if seen.deletion is not None:
            self.last = tuple(deletion_problems(seen.deletion, declared))
        self.calm = self._rehearsal(seen, changes)
        if self.request.failures == "each":
            self.events = tuple(_events(seen.steps, answers=self.behaviour == CALM))
        self._is_begun = True

    def _deploy(self, meanwhile: Meanwhile) -> _Seen:
        """Deploy NEW, then what comes after it, and return what was seen."""
        trial = meanwhile.trial
        calls_before = calls(trial.account)
        trial.watch = self._watch("deploying NEW")
        outcome = trial.deploy(self.request.new, self.request.old)
        callers = tuple(caller_problems(calls_before, calls(trial.account)))

        # The events before the deployment are its first steps.
        moments = (*meanwhile.moments, *outcome.moments)
        update = Sequence(replace(outcome, moments=moments), meanwhile.before)
        steps = self._typed(update.steps())
        way_back, deletion = self._afterwards(trial, update)
        return _Seen(
            update=update,
            steps=steps,
            callers=callers,
            way_back=way_back,
            deletion=deletion,
            meanwhile=tuple(moment.step.subject for moment in meanwhile.moments),
            not_simulated=trial.account.not_simulated,
        )

    def _rehearsal(self, seen: _Seen, changes: DataChanges) -> Rehearsal:
        """Return the rehearsal without failures."""
        old, new = self.request.old, self.request.new
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
                *_not_simulated(self.request, seen.update),
            ),
            problems=_unique(*self.first, *self.last),
            resources=resources,
            simulated=simulated,
            construct_paths=construct_paths(old, new),
            meanwhile=seen.meanwhile,
        )

    def run(self) -> Rehearsal:
        """Let each step fail too, and return the rehearsal."""
        if not self._is_begun:
            self.begin()
        results: dict[int, Result] = {}
        if self.events:
            for index, result in self._results():
                results[index] = result
                self.notify(Attempted())

        failures: list[Failure] = []
        problems: list[Problem] = []
        missed: list[str] = []
        for event in self.events:
            if event.index not in results:
                missed.append(
                    f"the failure of step {event.step.number}, {event.step.logical_id}, which a "
                    "second deployment did not reach"
                )
                continue
            failure, problems_of_failure = results[event.index]
            failures.append(failure)
            problems += problems_of_failure
        failures.sort(key=lambda failure: (failure.step, failure.event))
        return replace(
            self.calm,
            failures=tuple(failures),
            not_simulated=(*missed, *self.calm.not_simulated),
            problems=_unique(*self.first, *problems, *self.last),
        )

    def _typed(self, steps: tuple[RehearsedStep, ...]) -> tuple[RehearsedStep, ...]:
        """Add the types of resources that a rollback has deleted, from the templates."""
        declared = {**declared_resources(self.request.old), **declared_resources(self.request.new)}
        typed = []
        for step in steps:
            resource = declared.get((step.stack, step.logical_id))
            if not step.type and resource is not None:
                typed.append(replace(step, type=resource.type))
            else:
                typed.append(step)
        return tuple(typed)

    def _afterwards(
        self, trial: Trial, update: Sequence
    ) -> tuple[Sequence | None, Sequence | None]:
        """Deploy OLD again, then NEW, and delete it; return the way back and the deletion."""
        old, new = self.request.old, self.request.new
        if new == NONE or not update.outcome.is_complete:
            return None, None

        way_back = None
        if old != NONE:
            trial.watch = self._watch("deploying OLD again")
            way_back = Sequence(trial.deploy(old, new), _last(update))
            if not way_back.outcome.is_complete:
                return way_back, None
            trial.watch = self._watch("deploying NEW again")
            if not trial.deploy(new, old).is_complete:
                return way_back, None

        trial.watch = self._watch("deleting NEW")
        deletion = Sequence(trial.deploy(NONE, new), _last(update))
        return way_back, deletion

    def _watch(self, work: str) -> Callable[[str], None]:
        return lambda place: self.notify(Stepping(work, place))

    def _save(self, meanwhile: Meanwhile) -> Copy:
        """Keep the account as it is in a copy of this process, which waits for events."""
        folder = str(self._folders.enter_context(temporary_folder()))
        side = copy_account(
            meanwhile.trial.account,
            lambda: copy_process("while steps fail", folder, has_copies=True),
        )
        if isinstance(side, Original):
            with side:
                self._let_fail(meanwhile, side, folder)
        assert isinstance(side, Copy)  # a copy has ended
        self._saved = side
        return side

    def _results(self) -> Iterator[tuple[int, Result]]:
        """Let the copy of OLD deploy NEW, and yield the result of each event."""
        saved = self._saved
        if saved is None:
            with prepared(self.request, self.behaviour, self.notify) as meanwhile:
                saved = self._save(meanwhile)
        saved.send(self.events)
        while (answer := saved.receive()) is not None:
            if isinstance(answer, Alive):
                self.notify(answer)
            else:
                yield answer

    def _let_fail(self, meanwhile: Meanwhile, original: Original, folder: str) -> None:
        """Wait for the events, deploy NEW, and send the result of each; the last answer is
        ``None``.
        """
        trial = meanwhile.trial
        events = original.receive()
        trial.set_fleets(self.request.fleets)
        with FailingSteps(trial, events, folder, original) as failing:
            outcome = trial.deploy(self.request.new, self.request.old)
            if failing.event is not None:
                failing.answer(_result(Sequence(outcome, meanwhile.last), failing.event))
        original.send(None)


@contextmanager
def prepared(
    request: Request, behaviour: Behaviour, notify: Notify = ignore
) -> Iterator[Meanwhile]:
    """Open a trial in which OLD is deployed, the fleets have their sizes and the events have
    happened.
    """
    with opened([request.old, request.new], behaviour) as trial:
        trial.watch = lambda place: notify(Stepping("deploying OLD", place))
        outcome = trial.set_up(request.old)
        if not outcome.is_complete:
            raise TemplateError(
                f"OLD cannot be deployed in the simulated account: {outcome.reason}"
            )
        trial.set_fleets(request.fleets)
        yield Meanwhile(trial, request)


def _result(sequence: Sequence, event: StepEvent) -> Result:
    """Return the end of a deployment in which a step failed or was reverted."""
    find = revert_problems if event.kind == "reverts" else failure_problems
    problems = list(find(sequence, event.step.place, event.step.stack))
    return _failure(event.step, sequence, event.kind), problems


def _events(steps: tuple[RehearsedStep, ...], *, answers: bool) -> Iterator[StepEvent]:
    """Each step that can fail, then what can happen in place of a failure.

    With ``answers``, a new custom resource also answers FAILED. After an update its physical ID
    stays the same, whether the response is lost or says FAILED.
    """
    changing = [step for step in steps if not step.is_cleanup]
    events: list[tuple[RehearsedStep, FailureEvent]] = [(step, "fails") for step in changing]
    for step in changing:
        if answers and step.action == "create" and is_custom(step.type):
            events.append((step, "answers FAILED"))
    for step in changing:
        if _is_update(step):
            events.append((step, "reverts"))

    for index, (step, kind) in enumerate(events):
        yield StepEvent(index, step, kind)


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
    return Failure(
        step.number,
        step.logical_id,
        event,
        outcome.last_status,
        outcome.reason,
        sequence.serving(_last(sequence)),
        outcome.leftovers,
        place=step.place,
    )


def _noted(not_simulated: Mapping[str, list[str]]) -> Iterator[str]:
    """Name what the account noted, without the stacks."""
    for what, names in not_simulated.items():
        listed = ", ".join(_without_stack(name) for name in names)
        yield f"{what} {listed}"


def _without_stack(name: str) -> str:
    """The logical ID of ``<stack>/<logical ID>``; a sentence stays as it is."""
    return name if " " in name else name.rpartition("/")[2]


def _not_simulated(request: Request, calm: Sequence) -> Iterator[str]:
    """What no rehearsal simulates; of endpoints only if there are any."""
    moments = (calm.before, *calm.outcome.moments)
    has_endpoints = any(moment is not None and moment.serving for moment in moments)
    if not (request.old.has_assets and request.new.has_assets):
        what = "functions and models" if has_endpoints else "functions"
        yield f"{what}, which a template alone does not contain; who may read what"
    of_endpoints = "the start of Triton, the capacity of instance types, " if has_endpoints else ""
    yield f"{of_endpoints}the time that steps take"


def _unique(*problems: Problem) -> tuple[Problem, ...]:
    """One problem for each code and place."""
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


def declared_resources(version: Version) -> dict[tuple[str, str], Resource]:
    """The resources of all stacks, by stack and logical ID."""
    declared = {}
    for stack in version.stacks:
        for logical_id, resource in stack.template.resources.items():
            declared[stack.name, logical_id] = resource
    return declared
