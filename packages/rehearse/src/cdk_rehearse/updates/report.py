"""What a rehearsal reports: steps, readers, failures, numbers of instances and problems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from constructs_triton_core.findings import Finding, Place, Severity

_LOGICAL_ID = re.compile(
    r"(?<![\w:/.-])(?:[A-Za-z0-9-]+-(?P<generated>[A-Za-z0-9]+)-[A-Z0-9]{12}|[A-Za-z0-9]+)(?![\w/-])"
)
"""A word that may be a logical ID, or a name that CloudFormation generates from one;
no part of an ARN.
"""

_PLACE = re.compile(r"(?<![\w:/.-])[A-Za-z0-9]+(?:/[A-Za-z0-9]+)+(?![\w/-])")
"""Words that may be logical IDs, the last one in a nested stack."""

GENERATED = re.compile(r"-[A-Z0-9]{12}(?![\w-])")
"""The end of a name that CloudFormation generates, which is another one after each deployment."""

__all__ = [
    "GENERATED",
    "Failure",
    "Instances",
    "Leftover",
    "Operation",
    "Problem",
    "Rehearsal",
    "RehearsedStep",
]

FailureEvent = Literal["fails", "answers FAILED", "reverts"]


@dataclass(frozen=True, slots=True)
class Problem(Finding):
    """An error or a warning of a rehearsal.

    ``place`` is where the app creates the construct, or ``None`` if the assembly does not have it.

    Args:
        stack: Name of the stack that it is in. Default: none, as of an endpoint.
        construct: Path of the construct, from the path of its stack on. Default: not known.
        template: Where the template declares the resource. Default: not known.
    """

    stack: str = ""
    construct: str = ""
    template: Place | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``rehearse --json`` prints."""
        return {
            "code": self.code,
            "severity": self.severity,
            "path": self.path,
            "stack": self.stack,
            "construct": self.construct,
            "message": self.message,
            "hint": self.hint,
            "line": None if self.place is None else self.place.line,
            "place": None if self.place is None else self.place._asdict(),
            "template": None if self.template is None else self.template._asdict(),
        }


@dataclass(frozen=True)
class RehearsedStep:
    """One change of a resource.

    Args:
        number: Position in the rehearsal, from 1.
        stack: Name of the stack.
        action: What CloudFormation does: ``create``, ``update``, ``replace`` or ``delete``. A
            replacement creates the new resource; a later step deletes the old one.
        logical_id: Logical ID of the resource.
        type: Resource type.
        is_cleanup: Whether the step belongs to the cleanup phase, which CloudFormation does not
            undo.
        serving: What each endpoint serves while the step runs: ``v1`` for its configuration before
            the update, ``v2`` for the new one, ``v1, v2`` while both have instances.
        may_read_old: Whether a new instance may read the old models after the step; ``None`` if no
            endpoint runs them or nothing is known.
        may_read_new: The same for the new models.
        nested: Logical IDs of the nested stacks that the resource is in, from the outermost,
            separated by ``/``. Default: it is in ``stack`` itself.
    """

    number: int
    stack: str
    action: str
    logical_id: str
    type: str
    is_cleanup: bool = False
    serving: Mapping[str, str] = field(default_factory=dict)
    may_read_old: bool | None = None
    may_read_new: bool | None = None
    nested: str = ""

    @property
    def place(self) -> str:
        """The logical ID, after those of the nested stacks that it is in."""
        return f"{self.nested}/{self.logical_id}" if self.nested else self.logical_id


@dataclass(frozen=True)
class Leftover:
    """A resource that no stack contains any more, and that still exists.

    Args:
        logical_id: Logical ID that it had.
        type: Resource type.
        physical_id: Name or ARN in AWS.
        reason: Why it was not deleted; empty if the template retains it.
        stack: Name of the stack that it was in.
    """

    logical_id: str
    type: str
    physical_id: str
    reason: str = ""
    stack: str = ""


@dataclass(frozen=True)
class Failure:
    """What happens if one step fails.

    Args:
        step: Number of the step.
        logical_id: Logical ID of the resource.
        event: ``fails``; ``answers FAILED`` for a new custom resource whose function does so after
            its work; or ``reverts`` for an update of an endpoint after which SageMaker returns to
            the old configuration without an error.
        status: Status of the stack at the end.
        reason: Why the operation, or its rollback, failed.
        serving: What each endpoint serves at the end.
        leftovers: Resources that remain without a stack.
        place: The logical ID, after those of the nested stacks that the resource is in, separated
            by ``/``.
    """

    step: int
    logical_id: str
    event: FailureEvent
    status: str
    reason: str = ""
    serving: Mapping[str, str] = field(default_factory=dict)
    leftovers: tuple[Leftover, ...] = ()
    place: str = ""


@dataclass(frozen=True)
class Instances:
    """Numbers of instances of one endpoint.

    Args:
        endpoint: Name of the endpoint.
        instance_type: Instance types, separated by ", ".
        before: Instances before the update.
        peak: Highest number during the update.
        after: Instances after the update.
        peak_by_type: Highest number of each instance type, which its quota must allow.
        environment: Account and Region, ``aws://<account>/<Region>``. Default: the only one of the
            rehearsal.
    """

    endpoint: str
    instance_type: str
    before: int
    peak: int
    after: int
    peak_by_type: Mapping[str, int] = field(default_factory=dict)
    environment: str = ""


@dataclass(frozen=True)
class Operation:
    """The end of a further operation: the way back to OLD, or the deletion of NEW.

    Args:
        status: Status of the last stack.
        reason: Why it failed; empty after a success.
        leftovers: Resources that remain without a stack.
    """

    status: str
    reason: str = ""
    leftovers: tuple[Leftover, ...] = ()

    @property
    def succeeds(self) -> bool:
        """Whether the operation succeeds."""
        return (
            self.status.endswith("_COMPLETE") and "ROLLBACK" not in self.status and not self.reason
        )


@dataclass(frozen=True)
class Rehearsal:
    """What an update does, step by step, in a simulated account.

    Args:
        status: Status of each stack at the end, by name.
        reason: Why the update failed; empty after a success.
        steps: All steps, in order.
        replaced: Logical IDs of the resources that are replaced, in order.
        may_be_replaced: What CloudFormation may replace, each with the properties that decide it.
        failures: What happens if a step fails; empty with ``failures="none"``.
        instances: Instances before, during and after the update.
        callers: What callers of the endpoints notice; empty if nothing changes for them.
        leftovers: Resources that remain without a stack after the update itself.
        way_back: The result of deploying OLD again after the update; ``None`` if there is no OLD or
            no NEW.
        deletion: The result of deleting the stacks after the update; ``None`` if there is no NEW.
        depends_on_aws: What differs if AWS behaves differently where it documents nothing.
        not_simulated: What the rehearsal makes no statement about.
        problems: Errors and warnings, each with code, message and hint. Those of data come first;
            they are known from the two versions alone.
        resources: Number of resources of NEW, or of OLD before a deletion.
        simulated: How many of these are simulated. The others are compared by their schema.
        acknowledged: The errors and warnings that the user has acknowledged.
        unused_acknowledgements: Acknowledgements of the user that no error and no warning matches.
        construct_paths: Path of the construct below its stack, by logical ID, and by
            ``NESTED/ID`` in nested stacks; a resource that the CDK did not write has none.
        meanwhile: What happened between OLD and NEW, as ``meanwhile`` asked for.
        synthesis_warnings: Warnings that the synthesis of NEW wrote, and that of OLD did not. They
            are no problems of the rehearsal.
    """

    status: Mapping[str, str]
    reason: str = ""
    steps: tuple[RehearsedStep, ...] = ()
    replaced: tuple[str, ...] = ()
    may_be_replaced: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    instances: tuple[Instances, ...] = ()
    callers: tuple[str, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    way_back: Operation | None = None
    deletion: Operation | None = None
    depends_on_aws: tuple[str, ...] = ()
    not_simulated: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    resources: int = 0
    simulated: int = 0
    acknowledged: tuple[Problem, ...] = ()
    unused_acknowledgements: tuple[str, ...] = ()
    construct_paths: Mapping[str, str] = field(default_factory=dict)
    meanwhile: tuple[str, ...] = ()
    synthesis_warnings: tuple[str, ...] = ()

    @property
    def errors(self) -> list[Problem]:
        """The problems that are errors."""
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    def place_of(self, problem: Problem) -> str:
        """Return the place of a problem: with its stack, if the rehearsal has several.

        Args:
            problem: A problem of the rehearsal.
        """
        stacks = {*self.status, *(each.stack.partition("/")[0] for each in self.problems)} - {""}
        stack, _, nested = problem.stack.partition("/")
        if problem.path in (stack, problem.stack):
            return problem.path
        path = f"{nested}/{problem.path}" if nested else problem.path
        if len(stacks) < 2 or not stack:
            return path
        return f"{stack}/{self.named(path)}"

    def named(self, text: str) -> str:
        """Write the paths of constructs in place of logical IDs.

        Args:
            text: A text of the rehearsal.
        """
        paths = self.construct_paths
        text = _PLACE.sub(lambda match: paths.get(match[0], match[0]), text)
        return _LOGICAL_ID.sub(
            lambda match: paths.get(match["generated"] or match[0], match[0]), text
        )

    @property
    def lacks_lines(self) -> bool:
        """Whether the CDK wrote the problems' constructs and no line of the app.

        An app in TypeScript has the lines without a setting.
        """
        constructs = [problem for problem in self.problems if problem.construct]
        return bool(constructs) and not any(problem.place for problem in constructs)

    @property
    def point_of_no_return(self) -> int | None:
        """Number of the first step that CloudFormation does not undo; ``None`` if there is none."""
        return next((step.number for step in self.steps if step.is_cleanup), None)
