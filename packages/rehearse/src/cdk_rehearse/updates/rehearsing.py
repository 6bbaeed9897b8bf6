"""``rehearse``: the entry to rehearsals, which simulates in a process of its own."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
_MOST_SECONDS = 3600.0
_MOST_BYTES = 8 * 2**30
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
    _expect_choices(failures, orders)
    codes = tuple(acknowledge)
    expect_codes(codes)

    before, after = _chosen(read_version(old), read_version(new), tuple(stacks))
    before, after = _with_parameters(before, after, dict(parameters or {}))
    events = tuple(meanwhile)
    sizes = {**(fleets or {}), **_sizes_meanwhile(events)}
    request = Request(before, after, sizes, failures, orders, events)

    reporting = _Reporting(before, after, added_warnings(before, after), codes, progress)
    try:
        with template_errors(old, new) as errors:
            found = _looked_up(request, reporting.notify)
    except TemplateError as error:
        raise _with_lost_data(error, before, after) from None
    return reporting.complete(replace(found, problems=(*found.problems, *errors.found)))


def _expect_choices(failures: str, orders: int) -> None:
    """Raise ``InvalidValueError`` for a value that the type does not have."""
    if failures not in ("each", "none"):
        raise InvalidValueError(f"failures: must be 'each' or 'none', got {failures!r}")
    if orders not in (1, 2):
        raise InvalidValueError(f"orders: must be 1 or 2, got {orders!r}")


def _sizes_meanwhile(events: Iterable[str]) -> dict[str, int]:
    """The sizes to which fleets are scaled between OLD and NEW."""
    sizes = {}
    for event in events:
        kind, subject = parsed(event)
        if kind == "fleet":
            endpoint, size = counted(subject)
            sizes[endpoint] = size
    return sizes


@dataclass(frozen=True)
class _Reporting:
    """Completes a rehearsal of the other process before the caller sees it."""

    old: Version
    new: Version
    warnings: tuple[str, ...]
    codes: tuple[str, ...]
    """The problems that are acknowledged."""
    progress: Notify

    def complete(self, found: Rehearsal) -> Rehearsal:
        """Add construct paths and warnings of the synthesis, and leave out what is acknowledged."""
        found = replace(found, synthesis_warnings=self.warnings)
        return acknowledged(with_places(found, self.old, self.new), self.codes)

    def notify(self, reported: Progress) -> None:
        """Hand progress on to the caller."""
        if isinstance(reported, Calm):
            expect_looked_up(reported.rehearsal.reason, self.new)
            reported = replace(reported, rehearsal=self.complete(reported.rehearsal))
        self.progress(reported)


def _with_lost_data(error: TemplateError, old: Version, new: Version) -> TemplateError:
    """Add what the two versions alone show, so that the error does not hide lost data."""
    problems = tuple(lost_data_problems(data_changes(old, new)))
    known = Rehearsal({}, problems=problems, construct_paths=construct_paths(old, new))
    lines = [known.named(str(problem)) for problem in problems]
    if not lines:
        return error
    return TemplateError("\n".join([str(error), *lines]))


def _with_parameters(
    old: Version, new: Version, given: Mapping[str, str]
) -> tuple[Version, Version]:
    """Give each stack the values of its parameters; an update keeps those that are deployed."""
    declared: set[str] = set()
    for stack in (*old.stacks, *new.stacks):
        declared.update(stack.template.parameters)
    for name in given:
        if name not in declared:
            raise InvalidValueError(f"parameter {name!r}: neither version has it; remove it")

    deployed = {stack.name: stack.parameters for stack in old.stacks}

    def valued(version: Version) -> Version:
        stacks = (
            stack.with_parameters({**deployed.get(stack.name, {}), **given})
            for stack in version.stacks
        )
        return replace(version, stacks=tuple(stacks))

    return valued(old), valued(new)


def _expect_stacks(names: tuple[str, ...], *versions: Version) -> None:
    """Raise ``InvalidValueError`` if neither version has one of these stacks."""
    known: set[str] = set()
    for version in versions:
        for stack in version.stacks:
            known.update((stack.name, *stack.names))
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
    if len(chosen.stacks) == 1:
        return alone.named(chosen.stacks[0].name), chosen

    wanted = ", ".join(_clearest_names(other))
    raise InvalidValueError(
        f"template {alone.stacks[0].name}: is compared with one stack; "
        f"pass --stack with one of {wanted}"
    )


def _clearest_names(version: Version) -> list[str]:
    """Return of each stack the name that the fewest stacks have."""
    names_of_stacks = [{stack.name, *stack.names} for stack in version.stacks]
    stacks_with = Counter(chain.from_iterable(names_of_stacks))
    return [min(sorted(names), key=stacks_with.__getitem__) for names in names_of_stacks]


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
        reported = pickle.loads(part)
        if isinstance(reported, Stepping):
            where = f"{reported.work}, at {reported.place}, "
        if isinstance(reported, Calm):
            where = ""
        notify(reported)

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
