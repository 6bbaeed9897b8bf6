"""A stack: its resources, its events, and the scope of its names."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from constructs_triton_core.cloud_assembly.assembly import MOST_STACKS
from constructs_triton_core.cloud_assembly.intrinsics import EvaluationBudget, Evaluator, text_of
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.cloud_assembly.unknown_values import Unknown, UnknownList, is_unknown

from ..errors import StackError, TemplateError
from ..providers.opaque import other_attributes
from ..providers.provider import Deployed
from ..services.resource_schemas import resource_schema
from ..services.service_api import ServiceApi
from .rules import Identifiers
from .scope import stored_parameter


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
        kind = "AWS::CloudFormation::Stack"
        self.events.append(Event(self.name, kind, self.id, status, self.reason))

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
            if stack.id == name_or_id or (
                stack.name == name_or_id and stack.status != "DELETE_COMPLETE"
            ):
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
        if len(self._existing()) >= MOST_STACKS:
            raise StackError(f"Limit for stack has been exceeded: {MOST_STACKS:,} stacks")
        api = self.api
        identity = UUID(api.stand_ins.token(name, "", 32))
        arn = f"arn:aws:cloudformation:{api.region}:{api.account}:stack/{name}/{identity}"
        stack = Stack(name, arn, shown=api.stand_ins.shown)
        self.all.append(stack)
        return stack

    def evaluator(
        self,
        stack: Stack,
        template: Template,
        parameters: Mapping[str, Any],
        resources: Mapping[str, Deployed],
        budget: EvaluationBudget | None = None,
    ) -> Evaluator:
        """Evaluates the values of a template within a stack, as it is now."""

        def unknown_function(name: str, value: Any) -> Unknown:
            self.api.note_not_simulated("intrinsic function", stack.name, name)
            return self.api.stand_ins.other(json.dumps(value, sort_keys=True), name)

        scope = Scope(self, stack, parameters, resources)
        return Evaluator(template, scope, budget, unknown_function)

    def read_parameters(self, template: Template, given: Mapping[str, str]) -> dict[str, Any]:
        """The values of the template's parameters: given, default, or from SSM."""
        unknown = sorted(given.keys() - template.parameters.keys())
        if unknown:
            raise TemplateError(f"Parameters: {unknown} do not exist in the template")
        declared = template.parameters.items()
        missing = [name for name, each in declared if name not in given and "Default" not in each]
        if missing:
            raise TemplateError(f"Parameters: {missing} must have values")
        return {
            name: self._parameter(each, given.get(name, each.get("Default")))
            for name, each in declared
        }

    def _parameter(self, declaration: Mapping[str, Any], value: Any) -> Any:
        kind = declaration["Type"]
        allowed = declaration.get("AllowedValues")
        if allowed is not None and value not in allowed and not is_unknown(value):
            raise TemplateError(f"Parameter value {value!r} must be one of {allowed}")
        if kind.startswith("AWS::SSM::Parameter::Value<"):
            value = stored_parameter(str(value), self.api)
            kind = kind.removeprefix("AWS::SSM::Parameter::Value<").removesuffix(">")
        if kind == "CommaDelimitedList" or kind.startswith("List<"):
            text = text_of(value)
            return text.split_at(",") if isinstance(text, Unknown) else text.split(",")
        return value

    @property
    def exports(self) -> dict[str, str]:
        """The values of all exports by name."""
        outputs = (output for stack in self._existing() for output in stack.outputs)
        return {each.export_name: each.value for each in outputs if each.export_name is not None}

    def _existing(self) -> list[Stack]:
        return [stack for stack in self.all if stack.status != "DELETE_COMPLETE"]


@dataclass(frozen=True)
class Scope:
    """Resolves the names in a stack's template: parameters, existing resources,
    outputs of other stacks.
    """

    stacks: Stacks
    stack: Stack
    parameters: Mapping[str, Any]
    resources: Mapping[str, Deployed]

    def ref(self, name: str) -> Any:
        """Return the value of a pseudo parameter or parameter, or the physical ID of a resource."""
        api, stack = self.stacks.api, self.stack
        values = {
            "AWS::AccountId": api.account,
            "AWS::Region": api.region,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": stack.name,
            "AWS::StackId": stack.id,
            "AWS::NotificationARNs": UnknownList("", []),
            **self.parameters,
        }
        if name in values:
            return values[name]
        if name in self.resources:
            return self.resources[name].physical.id
        if not self.stack.template.is_complete:
            return api.stand_ins.other("", name)
        raise TemplateError(
            f"Ref: nothing is called {name}, or it was not made because of its condition"
        )

    def get_att(self, logical_id: str, attribute: str) -> Any:
        """Return an attribute of an existing resource."""
        if logical_id not in self.resources and not self.stack.template.is_complete:
            return self.stacks.api.stand_ins.other("", f"{logical_id}.{attribute}")
        if logical_id not in self.resources:
            raise TemplateError(f"Fn::GetAtt: no resource is called {logical_id}")
        deployed = self.resources[logical_id]
        attributes = deployed.physical.attributes
        if attribute in attributes:
            return attributes[attribute]
        others = other_attributes(deployed, self.stacks.api)
        if attribute in others:
            return others[attribute]
        if resource_schema(deployed.request.type).attributes is None:  # all are known
            known = sorted(attributes)
            raise TemplateError(
                f"Fn::GetAtt: {logical_id} has no attribute {attribute}, only {known}"
            )
        # AWS adds attributes to types from time to time.
        what = f"attribute {attribute} of {deployed.request.type}"
        self.stacks.api.note_not_simulated(what, self.stack.name, logical_id)
        return self.stacks.api.stand_ins.other("", f"{logical_id}.{attribute}")

    def import_value(self, name: str) -> str:
        """Return the value of an export. One that no stack of this account has may exist in AWS."""
        exports = self.stacks.exports
        if isinstance(name, Unknown) and name not in exports:
            return Unknown(name)
        if name not in exports and not self.stacks.api.assumes_existing:
            raise TemplateError(f"No export named {name} found")
        return exports[name] if name in exports else self._opaque_export(name)

    def stack_output(self, stack: str, name: str, region: str | None) -> str:
        """Return an output of another stack, which can be in another account or Region."""
        api, found, output = self.stacks.api, self.stacks.find(stack), f"{stack}.{name}"
        is_here = region in (None, api.region) and found is not None
        if is_here and found is not None and name in found.output_values:
            return found.output_values[name]
        place = (region or api.region, output)
        others = (value for key, value in api.passed.items() if key[1:] == place)
        passed = api.passed.get((api.account, *place)) or next(others, None)
        if passed is None and (is_here or not api.assumes_existing):
            raise TemplateError(f"No output named {name} found in stack {stack}")
        return passed or self._opaque_export(output)

    def availability_zones(self, region: str) -> list[str]:
        """Return the Availability Zones of the Region."""
        api = self.stacks.api
        if region != api.region:  # the Zones of other Regions are not simulated
            zones = api.stand_ins.other("", f"Zones of {region}")
            return UnknownList(zones, [zones])
        found = api.client("ec2").describe_availability_zones()["AvailabilityZones"]
        return [each["ZoneName"] for each in found]

    def _opaque_export(self, name: str) -> str:
        api = self.stacks.api
        api.note_not_simulated("value of an export", "", name)
        return api.stand_ins.other("", name)
