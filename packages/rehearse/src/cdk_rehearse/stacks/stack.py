"""Stacks: their resources, their events, and the values of their templates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from constructs_triton_core.cloud_assembly.assembly import MOST_STACKS
from constructs_triton_core.cloud_assembly.intrinsics import text_of
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.cloud_assembly.unknown_values import Unknown, is_unknown

from ..errors import StackError, TemplateError
from ..providers.provider import Deployed
from ..services.service_api import ServiceApi
from .rules import Identifiers
from .scope import stored_parameter

_OF_SSM = "AWS::SSM::Parameter::Value<"
"""The beginning of the types of parameters whose value is the name of a parameter in SSM."""


@dataclass(frozen=True)
class Event:
    """One event of a stack.

    Args:
        logical_id: Logical ID of the resource; the stack's name for an event of the stack.
        type: Resource type.
        physical_id: Physical ID of the resource, empty before it exists.
        status: Status such as ``"CREATE_COMPLETE"``.
        reason: Why an operation failed, or who started it.
        id: Unique ID of the event. Default: a random one.
        timestamp: Time in seconds since the epoch. Default: now.
    """

    logical_id: str
    type: str
    physical_id: str
    status: str
    reason: str = ""
    id: str = field(default_factory=lambda: str(uuid4()))
    timestamp: float = field(default_factory=time.time)


@dataclass(frozen=True)
class Output:
    """An output of a stack.

    Args:
        key: Name of the output in the template.
        value: Value of the output.
        description: Description in the template.
        export_name: Name under which other stacks import the value. Default: it is not exported.
    """

    key: str
    value: str
    description: str = ""
    export_name: str | None = None


@dataclass
class Stack:
    """A stack of the simulated account.

    Args:
        name: Name of the stack.
        id: ARN of the stack.
        template: The template that was deployed last. Default: an empty one.
        given: Parameters as the deployment passed them.
        parameters: Values of all parameters of the template.
        tags: Tags of the stack.
        resources: The existing resources by logical ID.
        outputs: Outputs of the stack.
        status: Status such as ``"UPDATE_COMPLETE"``.
        reason: Why the last operation failed; empty after a success.
        events: All events, oldest first.
        created: Time of creation in seconds since the epoch. Default: now.
        termination_protection: Whether CloudFormation's API refuses to delete the stack.
        roll_back: Resumes a rollback of an update that failed, as ``ContinueUpdateRollback`` does.
            Default: no rollback failed.
        shown: Replaces the stand-ins of unknown values in a reason. Default: there are none.
        path: The stack's name. For a nested stack, the path of its parent and its logical ID, as
            ``Shop/Search``: its own name differs after each deployment. Default: the name.
    """

    name: str
    id: str
    template: Template = field(default_factory=lambda: Template({}))
    given: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    tags: list[dict[str, str]] = field(default_factory=list)
    resources: dict[str, Deployed] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    status: str = "REVIEW_IN_PROGRESS"
    reason: str = ""
    events: list[Event] = field(default_factory=list)
    created: float = field(default_factory=time.time)
    termination_protection: bool = False
    roll_back: Callable[[], None] | None = None
    shown: Callable[[str], str] = str
    path: str = ""

    def __post_init__(self) -> None:
        self.path = self.path or self.name

    def enter(self, status: str, reason: str = "") -> None:
        """Set the status of the stack and record an event.

        Args:
            status: The new status.
            reason: Why the stack has it.
        """
        self.reason = self.shown(reason)
        self.status = status
        event = Event(self.name, "AWS::CloudFormation::Stack", self.id, status, self.reason)
        self.events.append(event)

    def record(
        self, logical_id: str, type: str, physical_id: str, status: str, reason: str = ""
    ) -> None:
        """Record an event of a resource.

        Args:
            logical_id: Logical ID of the resource.
            type: Resource type.
            physical_id: Physical ID of the resource, empty before it exists.
            status: Status of the resource.
            reason: Why the resource has it.
        """
        event = Event(logical_id, type, physical_id, status, self.shown(reason))
        self.events.append(event)

    @property
    def exists(self) -> bool:
        """Whether the stack is not deleted."""
        return self.status != "DELETE_COMPLETE"

    @property
    def output_values(self) -> dict[str, str]:
        """The values of the outputs by name."""
        return {output.key: output.value for output in self.outputs}


@dataclass
class Stacks:
    """All stacks of the account in the Region, including deleted ones."""

    api: ServiceApi
    all: list[Stack] = field(default_factory=list)
    identifiers: Identifiers = field(default_factory=Identifiers)

    def find(self, name_or_id: str) -> Stack | None:
        """Find a stack by id, or by name if it is not deleted."""
        for stack in reversed(self.all):
            if stack.id == name_or_id:
                return stack
            if stack.name == name_or_id and stack.exists:
                return stack
        return None

    def get(self, name_or_id: str) -> Stack:
        """Find a stack; raises ``StackError`` if it does not exist."""
        found = self.find(name_or_id)
        if found is None:
            raise StackError(f"Stack with id {name_or_id} does not exist")
        return found

    def add(self, name: str) -> Stack:
        """Create an empty stack, within CloudFormation's quota:
        a template can be nested in itself.
        """
        if sum(stack.exists for stack in self.all) >= MOST_STACKS:
            raise StackError(f"Limit for stack has been exceeded: {MOST_STACKS:,} stacks")

        api = self.api
        identity = UUID(api.stand_ins.token(name, "", 32))
        arn = f"arn:aws:cloudformation:{api.region}:{api.account}:stack/{name}/{identity}"
        stack = Stack(name, arn, shown=api.stand_ins.shown)
        self.all.append(stack)
        return stack

    def read_parameters(self, template: Template, given: Mapping[str, str]) -> dict[str, Any]:
        """The values of the template's parameters: given, default, or from SSM."""
        unknown = sorted(given.keys() - template.parameters.keys())
        if unknown:
            raise TemplateError(f"Parameters: {unknown} do not exist in the template")

        missing = [
            name
            for name, declaration in template.parameters.items()
            if name not in given and "Default" not in declaration
        ]
        if missing:
            raise TemplateError(f"Parameters: {missing} must have values")

        values = {}
        for name, declaration in template.parameters.items():
            value = given.get(name, declaration.get("Default"))
            values[name] = self._parameter(declaration, value)
        return values

    def _parameter(self, declaration: Mapping[str, Any], value: Any) -> Any:
        """The value that ``Ref`` of a parameter has (CloudFormation user guide, "Parameters")."""
        allowed = declaration.get("AllowedValues")
        # A deployment passes strings, also for numbers.
        texts = [text_of(value) for value in allowed or ()]
        if allowed is not None and text_of(value) not in texts and not is_unknown(value):
            raise TemplateError(f"Parameter value {value!r} must be one of {allowed}")

        kind = declaration["Type"]
        if kind.startswith(_OF_SSM):
            value = stored_parameter(str(value), self.api)
            kind = kind.removeprefix(_OF_SSM).removesuffix(">")
        if kind != "CommaDelimitedList" and not kind.startswith("List<"):
            return value

        text = text_of(value)
        return text.split_at(",") if isinstance(text, Unknown) else text.split(",")

    @property
    def exports(self) -> dict[str, str]:
        """The values of all exports by name."""
        found = {}
        for stack in self.all:
            if not stack.exists:
                continue
            for output in stack.outputs:
                if output.export_name is not None:
                    found[output.export_name] = output.value
        return found
