"""The deployments of a pass in which no step fails: NEW, OLD again, NEW again, and the deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .analysis import Sequence
from .callers import caller_problems, calls
from .changed_tensors import tensor_changes
from .meanwhile import Meanwhile
from .model_files import model_files
from .progress import Notify, Stepping
from .report import Problem, RehearsedStep
from .trial import Trial
from .versions import NONE, Request, declared_resources

__all__ = ["CalmDeployments", "deploy_calmly"]


@dataclass(frozen=True)
class CalmDeployments:
    """What the deployments without failures have shown.

    ``way_back`` and ``deletion`` are ``None`` if a deployment before them was not complete.
    ``meanwhile`` is what happened before the update. ``not_simulated`` is what the account noted:
    kinds of things with ``<stack>/<logical ID>``. ``not_compared`` are the models of which
    it is not known whether their inputs and outputs change.
    """

    update: Sequence
    steps: tuple[RehearsedStep, ...]
    callers: tuple[Problem, ...]
    not_compared: tuple[str, ...]
    way_back: Sequence | None
    deletion: Sequence | None
    meanwhile: tuple[str, ...]
    not_simulated: Mapping[str, list[str]]


def deploy_calmly(meanwhile: Meanwhile, notify: Notify) -> CalmDeployments:
    """Deploy NEW, then what comes after it, and return what was seen.

    Args:
        meanwhile: The account in which OLD is deployed.
        notify: Called with each change of a resource.
    """
    request = meanwhile.request
    trial = meanwhile.trial
    calls_before = calls(trial.account)
    models_before = model_files(trial.account)
    trial.watch = _watch("deploying NEW", notify)
    outcome = trial.deploy(request.new, request.old)
    callers = tuple(caller_problems(calls_before, calls(trial.account)))
    tensors = tensor_changes(trial.account, models_before, model_files(trial.account))

    # The events before the deployment are its first steps.
    moments = (*meanwhile.moments, *outcome.moments)
    update = Sequence(replace(outcome, moments=moments), meanwhile.before)
    steps = _with_declared_types(update.steps(), request)
    way_back, deletion = _deploy_afterwards(trial, request, update, notify)
    return CalmDeployments(
        update=update,
        steps=steps,
        callers=(*callers, *tensors.noticed),
        not_compared=tensors.not_compared,
        way_back=way_back,
        deletion=deletion,
        meanwhile=tuple(moment.step.subject for moment in meanwhile.moments),
        not_simulated=trial.account.not_simulated,
    )


def _deploy_afterwards(
    trial: Trial, request: Request, update: Sequence, notify: Notify
) -> tuple[Sequence | None, Sequence | None]:
    """Deploy OLD again, then NEW, and delete it; return the way back and the deletion."""
    old, new = request.old, request.new
    if new == NONE or not update.outcome.is_complete:
        return None, None

    way_back = None
    if old != NONE:
        trial.watch = _watch("deploying OLD again", notify)
        way_back = Sequence(trial.deploy(old, new), update.last)
        if not way_back.outcome.is_complete:
            return way_back, None

        trial.watch = _watch("deploying NEW again", notify)
        if not trial.deploy(new, old).is_complete:
            return way_back, None

    trial.watch = _watch("deleting NEW", notify)
    deletion = Sequence(trial.deploy(NONE, new), update.last)
    return way_back, deletion


def _watch(work: str, notify: Notify) -> Callable[[str], None]:
    """Return what reports each change of a resource as a part of this work."""
    return lambda place: notify(Stepping(work, place))


def _with_declared_types(
    steps: tuple[RehearsedStep, ...], request: Request
) -> tuple[RehearsedStep, ...]:
    """Add the types of resources that a rollback has deleted, from the templates."""
    declared = declared_resources(request.old, request.new)
    typed = []
    for step in steps:
        resource = declared.get((step.stack, step.logical_id))
        if not step.type and resource is not None:
            typed.append(replace(step, type=resource.type))
        else:
            typed.append(step)
    return tuple(typed)
