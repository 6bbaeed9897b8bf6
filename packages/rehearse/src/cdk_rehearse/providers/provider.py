"""The base of resource providers: create, update and delete by calling a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import NotSimulatedError, StackError
from ..services.service_api import ServiceApi


@dataclass(frozen=True)
class Request:
    """What CloudFormation asks a resource type to create.

    Args:
        stack_name: Name of the stack.
        stack_id: ARN of the stack.
        logical_id: Logical ID in the template.
        type: Resource type.
        properties: Properties, without intrinsic functions.
    """

    stack_name: str
    stack_id: str
    logical_id: str
    type: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Physical:
    """An existing resource as its service knows it.

    Args:
        id: Physical ID, the value of ``Ref``.
        attributes: The values of ``Fn::GetAtt``.
        is_simulated: Whether the account simulates the resource; otherwise its attributes have no
            meaning.
    """

    id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    is_simulated: bool = True


@dataclass(frozen=True)
class Deployed:
    """A resource of a stack in its current state.

    Args:
        request: What CloudFormation asked for.
        physical: What exists.
        deletion_policy: ``DeletionPolicy`` of the template.
        update_replace_policy: ``UpdateReplacePolicy`` of the template.
    """

    request: Request
    physical: Physical
    deletion_policy: str = "Delete"
    update_replace_policy: str = "Delete"

    @property
    def properties(self) -> Mapping[str, Any]:
        """The properties, without intrinsic functions."""
        return self.request.properties

    @property
    def is_kept_after_create(self) -> bool:
        """Whether the rollback of the operation that created the resource keeps it."""
        return self.deletion_policy == "Retain"


class ResourceFailedError(StackError):
    """A resource failed but exists, so a rollback must delete it."""

    def __init__(self, message: str, physical: Physical) -> None:
        super().__init__(message)
        self.physical = physical


class Provider:
    """A resource type; subclasses call the service."""

    type: str
    name_property: str | None = None
    """The property that contains the resource's name."""
    name_limit: ClassVar[int] = 63
    deletion: ClassVar[tuple[str, str, str]]
    """The service, its operation, and the member for the physical ID, or a
    list of such, to delete.
    """
    by_type: ClassVar[dict[str, Callable[[ServiceApi], Provider]]] = {}
    """The providers of all types."""

    def __init_subclass__(cls) -> None:
        if "type" in vars(cls):
            cls.by_type[cls.type] = cls

    def __init__(self, api: ServiceApi) -> None:
        self.api = api

    def create(self, request: Request) -> Physical:
        raise NotImplementedError

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update in place; called only for changes that need no replacement."""
        changed = sorted(different(current.properties, request.properties))
        raise NotSimulatedError(f"{self.type}: an update of {changed} is not simulated")

    def delete(self, current: Deployed) -> None:
        """Delete the resource with the operation in ``deletion``."""
        service, operation, member = self.deletion
        is_list = member.endswith("s")
        self.api.call(
            service,
            operation,
            **{member: [current.physical.id] if is_list else current.physical.id},
        )

    def simulated(self, request: Request, *names: str) -> dict[str, Any]:
        """The properties of these names; the others are noted as not simulated."""
        for name in sorted(request.properties.keys() - set(names)):
            self.api.note_not_simulated(
                f"{self.type}.{name}", request.stack_name, request.logical_id
            )
        return {name: value for name, value in request.properties.items() if name in names}

    def name(self, request: Request) -> str:
        """The name from the template, or a generated one: stack, logical id, 12 letters."""
        given = request.properties.get(self.name_property or "")
        if given:
            return str(given)
        end = self.api.stand_ins.token(request.stack_name, request.logical_id, 12)
        tail = f"-{end.upper()}"
        return f"{request.stack_name}-{request.logical_id}"[: self.name_limit - len(tail)] + tail


class PutProvider(Provider):
    """A resource type with one operation to create and update."""

    def create(self, request: Request) -> Physical:
        return self.put(request, self.name(request))

    def update(self, current: Deployed, request: Request) -> Physical:
        return self.put(request, current.physical.id)

    def put(self, request: Request, name: str) -> Physical:
        raise NotImplementedError


def different(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """The names that do not have the same value in both."""
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def without(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The properties without these."""
    return {name: value for name, value in properties.items() if name not in names}


def tags_as_map(tags: list[Mapping[str, str]]) -> dict[str, str]:
    """Convert CloudFormation's list of tags to a map."""
    return {tag["Key"]: tag["Value"] for tag in tags}
