"""Runs a rehearsal in this process: once calmly, then with a failure at each step, in one or two orders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.errors import TemplateError
from constructs_triton_core.findings import Finding

from ..behaviour import CALM, Behaviour
from ..providers import is_custom
from ..steps import When
from .analysis import Sequence
from .meanwhile import Meanwhile
from .problems import deletion_problems, failure_problems, leftover_problems, revert_problems, update_problems
from .recording import Moment
from .report import Failure, FailureEvent, Operation, Rehearsal, RehearsedStep
from .trial import Outcome, Trial, opened
from .versions import NONE, Request, construct_paths

_RANDOM = re.compile(r"-[A-Z0-9]{12}$")
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
    """Rehearse an update; raises ``TemplateError`` if OLD cannot be deployed."""
    found = _Pass(request, CALM).run()
    if request.orders == 1:
        return found
    other = _Pass(request, OTHER).run()
    return _compared(found, other)


def _compared(found: Rehearsal, other: Rehearsal) -> Rehearsal:
    """Add what only the other behaviour of AWS leads to."""
    known = {_place(each) for each in found.problems}
    added = [each for each in other.problems if _place(each) not in known]
    marked = [replace(each, message=f"depending on AWS: {each.message}") for each in added]
    notes = [
        "the order of independent resources: two orders tried",
        *_redeployments(found.steps),
        *(["what AWS does not document: " + f"{each.path} ({each.code})" for each in added]),
    ]
    return replace(found, problems=(*found.problems, *marked), depends_on_aws=tuple(notes))


def _redeployments(steps: tuple[RehearsedStep, ...]) -> Iterator[str]:
    """The updates of endpoints whose configuration stays the same."""
    for each in steps:
        if each.type in ENDPOINT_TYPES and (each.action, each.is_cleanup) == ("update", False):
            name = each.logical_id
            if "v2" not in "".join(each.serving.values()):
                yield f"whether step {each.number}, {name}, starts new instances for the same configuration"


def _place(problem: Finding) -> tuple[str, str]:
    """Code and place without the random end of a generated name, which differs from account to account."""
    return problem.code, _RANDOM.sub("", problem.path)


@dataclass
class _Pass:
    """A rehearsal under one behaviour of AWS."""

    request: Request
    behaviour: Behaviour

    def run(self) -> Rehearsal:
        old, new = self.request.old, self.request.new
        with self._prepared() as meanwhile:
            trial = meanwhile.trial
            outcome = trial.deploy(new, old)
            moments = (*meanwhile.moments, *outcome.moments)
            calm = Sequence(replace(outcome, moments=moments), meanwhile.before)
            steps = self._typed(calm.steps())
            way_back, deletion = self._afterwards(trial, calm)
            opaque = _opaque(trial.account.not_simulated)
        failures, problems = self._failures(steps)
        is_deletion = new == NONE
        return Rehearsal(
            status=calm.outcome.status,
            reason=calm.outcome.reason,
            steps=steps,
            replaced=calm.replaced(),
            failures=tuple(failures),
            instances=calm.instances(),
            callers=_callers(calm),
            leftovers=calm.outcome.leftovers,
            way_back=None if way_back is None else _operation(way_back.outcome),
            deletion=None if deletion is None else _operation(deletion.outcome),
            not_simulated=(*opaque, *_not_simulated(self.request)),
            problems=_unique(
                *update_problems(calm, is_deletion=is_deletion),
                *(() if not is_deletion else leftover_problems("after the deletion", calm.outcome.leftovers)),
                *problems,
                *(() if deletion is None else deletion_problems(deletion)),
            ),
            construct_paths=construct_paths(old, new),
            meanwhile=tuple(each.step.subject for each in meanwhile.moments),
        )

    def _typed(self, steps: tuple[RehearsedStep, ...]) -> tuple[RehearsedStep, ...]:
        """Add the types of resources that a rollback has deleted, from the templates."""
        declared = {
            (stack.name, logical_id): resource.type
            for version in (self.request.old, self.request.new)
            for stack in version.stacks
            for logical_id, resource in stack.template.resources.items()
        }
        return tuple(
            replace(each, type=each.type or declared.get((each.stack, each.logical_id), "")) for each in steps
        )

    @contextmanager
    def _prepared(self) -> Iterator[Meanwhile]:
        """A trial in which OLD is deployed, the fleets have their sizes and the events have happened."""
        request = self.request
        with opened([request.old, request.new], self.behaviour) as trial:
            outcome = trial.deploy(request.old, NONE)
            if not outcome.is_complete:
                raise TemplateError(f"OLD cannot be deployed in the simulated account: {outcome.reason}")
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

    def _failures(self, steps: tuple[RehearsedStep, ...]) -> tuple[list[Failure], list[Finding]]:
        failures: list[Failure] = []
        problems: list[Finding] = []
        if self.request.failures == "none":
            return failures, problems
        waiting = list(_events(steps, answers=self.behaviour == CALM))
        while waiting:
            with self._prepared() as meanwhile:
                trial, usual, is_clean = meanwhile.trial, meanwhile.trial.account.behaviour, True
                while waiting and is_clean:
                    step, event = waiting.pop(0)
                    trial.set_fleets(self.request.fleets)
                    outcome = trial.deploy(self.request.new, self.request.old, _failing(usual, step, event))
                    sequence = Sequence(outcome, meanwhile.last)
                    failures.append(_failure(step, sequence, event))
                    find = revert_problems if event == "reverts" else failure_problems
                    problems += find(sequence, step.logical_id)
                    is_clean = outcome.restored and event != "reverts" and not meanwhile.moments
        return sorted(failures, key=lambda each: (each.step, each.event)), problems


def _events(
    steps: tuple[RehearsedStep, ...], *, answers: bool
) -> Iterator[tuple[RehearsedStep, FailureEvent]]:
    """Each step that can fail, then what can happen in place of a failure.

    With ``answers``, a new custom resource also answers FAILED. After an update its physical ID stays the
    same, whether the response is lost or says FAILED.
    """
    changing = [each for each in steps if not each.is_cleanup]
    yield from ((each, "fails") for each in changing)
    created = [each for each in changing if each.action == "create" and answers]
    yield from ((each, "answers FAILED") for each in created if is_custom(each.type))
    yield from ((each, "reverts") for each in changing if _is_update(each))


def _failing(usual: Behaviour, step: RehearsedStep, event: FailureEvent) -> Behaviour:
    if event == "reverts":
        return replace(usual, endpoint_update="reverts")
    when: When = "after" if event == "fails" else event
    return replace(usual, failing={**usual.failing, step.logical_id: when})


def _is_update(step: RehearsedStep) -> bool:
    """Whether a step calls UpdateEndpoint, as the creation of an adopted endpoint does too."""
    return step.type in ENDPOINT_TYPES and (step.action == "update" or step.type == ADOPTED_TYPE)


def _last(sequence: Sequence) -> Moment | None:
    return sequence.outcome.moments[-1] if sequence.outcome.moments else sequence.before


def _operation(outcome: Outcome) -> Operation:
    return Operation(outcome.last_status, outcome.reason, outcome.leftovers)


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
    )


def _callers(sequence: Sequence) -> tuple[str, ...]:
    before = set() if sequence.before is None else set(sequence.before.serving)
    last = _last(sequence)
    after = set() if last is None else set(last.serving)
    return (
        *(f"endpoint {name} no longer exists" for name in sorted(before - after)),
        *(f"endpoint {name} is new" for name in sorted(after - before)),
    )


def _not_simulated(request: Request) -> tuple[str, ...]:
    notes = ["the start of Triton, the capacity of instance types, the time that steps take"]
    if not (request.old.has_assets and request.new.has_assets):
        notes.insert(0, "functions and models, which a template alone does not contain; who may read what")
    return tuple(notes)


def _opaque(not_simulated: Mapping[str, list[str]]) -> Iterator[str]:
    """What the account does not simulate, with the logical IDs of the resources."""
    for what, names in not_simulated.items():
        yield f"{what} {', '.join(name.rpartition('/')[2] for name in names)}"


def _unique(*problems: Finding) -> tuple[Finding, ...]:
    """One problem for each code and place."""
    found: dict[tuple[str, str], Finding] = {}
    for each in problems:
        found.setdefault((each.code, each.path), each)
    return tuple(found.values())
