"""``rehearse``: the entry to rehearsals, which simulates in a process of its own."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError, TemplateError
from constructs_triton_core.processes.bounded_process import BoundedProcess
from constructs_triton_core.untrusted.budget import OverBudgetError

from ..construct_libraries import construct_libraries
from .acknowledging import acknowledged, expect_codes
from .data_changes import data_changes
from .event_kinds import counted, parsed
from .lookups import expect_looked_up
from .lost_data import lost_data_problems
from .places import with_places
from .progress import Calm, Notify, Progress, Stepping, ignore
from .report import Rehearsal
from .synthesis_warnings import added_warnings
from .template_errors import template_errors
from .versions import NONE, Failures, Request, Version, construct_paths, read_version

_PROCESS = BoundedProcess("cdk_rehearse.updates.worker:answer", has_parts=True)
_MOST_SECONDS, _MOST_BYTES = 3600.0, 8 * 2**30
_MOST_SILENT_SECONDS = 1300.0
"""More than a copy of the process may be silent, since its error names the step."""


def rehearse(
    old: str | os.PathLike[str] | Template | Version | None,
    new: str | os.PathLike[str] | Template | Version | None,
    *,
    stacks: Iterable[str] = (),
    fleets: Mapping[str, int] | None = None,
    failures: Failures = "each",
    orders: int = 2,
    parameters: Mapping[str, str] | None = None,
    meanwhile: Iterable[str] = (),
    acknowledge: Iterable[str] = (),
    progress: Notify = ignore,
) -> Rehearsal:
    """Rehearse an update in a simulated account.

    Args:
        old: The deployed version: a folder of a cloud assembly, a template, or ``None`` before the
            first deployment. Of a template alone, neither functions nor models are known.
        new: The version to deploy; ``None`` for a deletion.
        stacks: Names of the stacks to rehearse. Default: all.
        fleets: Instances of endpoints before the update, by name or logical ID. Default: the
            highest number of an endpoint with scaling, the initial number of others.
        failures: ``"each"`` also lets every step fail once, ``"none"`` does not.
        orders: Number of orders of independent resources to try, 1 or 2. The second also does the
            opposite where AWS does not document what it does.
        parameters: Values of the templates' parameters, in both versions. Default: those of the
            deployed stack, or the defaults of the template.
        meanwhile: What happens in AWS after OLD and before NEW, each as ``KIND=SUBJECT``, for
            example ``"key-disabled=Key"``; ``KINDS`` of :mod:`cdk_rehearse.updates.event_kinds` has
            the kinds.
        acknowledge: Problems that do not count, each as ``CODE`` or ``CODE@PLACE`` with the
            construct path, logical ID, stack or endpoint that the report prints. Default: none.
        progress: Called with what is known before the rehearsal has ended: each change, then the
            rehearsal without failures, then each failure. :mod:`cdk_rehearse.updates.progress` has
            the classes. Default: nothing is called.

    Raises:
        TemplateError: a version cannot be read, OLD cannot be deployed, or the update fails on a
            value that the synthesis has not looked up in AWS.
        InvalidValueError: a stack, an argument, a code or the subject of an event does not exist,
            or a parameter has no value.
        MissingDependencyError: the extra ``rehearse`` is not installed.
    """
    if failures not in ("each", "none"):
        raise InvalidValueError(f"failures: must be 'each' or 'none', got {failures!r}")
    if orders not in (1, 2):
        raise InvalidValueError(f"orders: must be 1 or 2, got {orders!r}")
    known = tuple(acknowledge)
    expect_codes(known)
    before, after = _chosen(read_version(old), read_version(new), tuple(stacks))
    before, after = _with_parameters(before, after, dict(parameters or {}))
    events = tuple(meanwhile)
    scaled = [counted(subject) for kind, subject in map(parsed, events) if kind == "fleet"]
    request = Request(before, after, {**(fleets or {}), **dict(scaled)}, failures, orders, events)

    warnings = added_warnings(before, after)

    def reported(found: Rehearsal) -> Rehearsal:
        found = replace(found, synthesis_warnings=warnings)
        return acknowledged(with_places(found, before, after), known)

    def notify(each: Progress) -> None:
        if isinstance(each, Calm):
            expect_looked_up(each.rehearsal.reason, after)
            each = replace(each, rehearsal=reported(each.rehearsal))
        progress(each)

    try:
        with template_errors(old, new) as errors:
            found = _looked_up(request, notify)
    except TemplateError as error:
        raise _with_lost_data(error, before, after) from None
    return reported(replace(found, problems=(*found.problems, *errors.found)))


def _with_lost_data(error: TemplateError, old: Version, new: Version) -> TemplateError:
    """Add what the two versions alone show, so that the error does not hide lost data."""
    problems = tuple(lost_data_problems(data_changes(old, new)))
    known = Rehearsal({}, problems=problems, construct_paths=construct_paths(old, new))
    lines = [known.named(str(each)) for each in problems]
    return TemplateError("\n".join([str(error), *lines])) if lines else error


def _with_parameters(
    old: Version, new: Version, given: Mapping[str, str]
) -> tuple[Version, Version]:
    """Give each stack the values of its parameters; an update keeps those that are deployed."""
    declared = {name for each in (*old.stacks, *new.stacks) for name in each.template.parameters}
    for name in given:
        if name not in declared:
            raise InvalidValueError(f"parameter {name!r}: neither version has it; remove it")
    deployed = {each.name: each.parameters for each in old.stacks}
    before, after = (
        Version(
            tuple(
                each.with_parameters({**deployed.get(each.name, {}), **given})
                for each in version.stacks
            )
        )
        for version in (old, new)
    )
    return before, after


def _expect_stacks(names: tuple[str, ...], *versions: Version) -> None:
    known = {
        name
        for version in versions
        for stack in version.stacks
        for name in (stack.name, *stack.names)
    }
    for name in names:
        if name not in known:
            fix = f"pass one of {', '.join(sorted(known))}"
            raise InvalidValueError(f"stack {name!r} is in neither version; {fix}")
    if not known:
        raise InvalidValueError(
            "OLD and NEW are both none; pass an assembly or a template as one of them"
        )


def _chosen(old: Version, new: Version, stacks: tuple[str, ...]) -> tuple[Version, Version]:
    """The stacks to rehearse; a template alone is compared with one stack of the other version."""
    _expect_stacks(stacks, old, new)
    if NONE not in (old, new):
        if old.is_template:
            return _paired(old, new, stacks)
        if new.is_template:
            new, old = _paired(new, old, stacks)
            return old, new
    return old.only(stacks), new.only(stacks)


def _paired(alone: Version, other: Version, stacks: tuple[str, ...]) -> tuple[Version, Version]:
    """Give a template alone the name of the one stack that it is compared with."""
    stacks = tuple(name for name in stacks if name not in alone.stacks[0].names)
    named = other.only(stacks or alone.stacks[0].names)
    chosen = named if named.stacks or stacks else other
    if len(chosen.stacks) != 1:
        known = [{each.name, *each.names} for each in other.stacks]
        several = Counter(chain.from_iterable(known))
        names = ", ".join(min(sorted(each), key=lambda name: several[name]) for each in known)
        raise InvalidValueError(
            f"template {alone.stacks[0].name}: is compared with one stack; "
            f"pass --stack with one of {names}"
        )
    return alone.named(chosen.stacks[0].name), chosen


def _looked_up(request: Request, notify: Notify) -> Rehearsal:
    """Rehearse; a value that was not looked up in AWS makes the result unknown, not a failure."""
    try:
        found = _asked(request, notify)
    except TemplateError as error:
        expect_looked_up(str(error), request.old)
        raise
    expect_looked_up(found.reason, request.new)
    return found


def _asked(request: Request, notify: Notify) -> Rehearsal:
    """Rehearse in another process, and hand on what it reports."""
    construct_libraries()  # an imported package of this project may be in the current folder
    where = ""

    def receive(part: bytes) -> None:
        nonlocal where
        each = pickle.loads(part)
        if isinstance(each, Stepping):
            where = f"{each.work}, at {each.place}, "
        if isinstance(each, Calm):
            where = ""
        notify(each)

    try:
        data = _PROCESS.call(
            pickle.dumps(request),
            seconds=_MOST_SECONDS,
            memory_bytes=_MOST_BYTES,
            silent_seconds=_MOST_SILENT_SECONDS,
            receive_part=receive,
        )
        answer = pickle.loads(data)
    except OverBudgetError as error:
        raise ConstructsTritonError(
            f"the rehearsal stopped: {where}{error}; rehearse fewer stacks"
        ) from None
    if isinstance(answer, BaseException):
        raise answer
    if not isinstance(answer, Rehearsal):
        raise TypeError(f"unexpected answer {type(answer).__name__}")
    return answer
