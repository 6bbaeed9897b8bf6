"""The base of resource types of which every operation is one call of a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..errors import StackError
from .provider import Deployed, Physical, Provider, Request, without


class CalledResource(Provider):
    """A resource type whose properties are the members of the calls.

    A property that an operation does not know is not simulated.
    """

    name_limit = 64  # that of schedules, the lowest
    service: ClassVar[str]
    create_operation: ClassVar[str]
    update_operation: ClassVar[str] = ""
    """The operation with the same members that updates in place. Default: it is not simulated."""
    delete_operation: ClassVar[str]
    renamed: ClassVar[Mapping[str, str]] = {}
    """The members that have another name than their properties, by property."""
    set_later: ClassVar[tuple[str, ...]] = ()
    """The properties that :meth:`complete` sets, since the operation does not know them."""

    def create(self, request: Request) -> Physical:
        """Create the resource, and delete it again if it cannot be completed."""
        members = self.members(request, self.name(request))
        answer = self.call(self.create_operation, members)
        physical = self.physical({**members, **self.described(answer)})
        created = Deployed(request, physical)
        try:
            self.complete(self.key(created), request.properties)
        except StackError:
            self.delete(created)
            raise
        return physical

    def update(self, current: Deployed, request: Request) -> Physical:
        if not self.update_operation:
            return super().update(current, request)
        self.call(self.update_operation, self.members(request, current.physical.id))
        return current.physical

    def delete(self, current: Deployed) -> None:
        self.call(self.delete_operation, self.key(current))

    def members(self, request: Request, name: str) -> dict[str, Any]:
        """The members of the operations that create and update."""
        properties = without(request.properties, *self.set_later)
        members = {self.renamed.get(given, given): value for given, value in properties.items()}
        if self.name_property:
            members[self.name_property] = name
        return members

    def described(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The description of what was created, in the response."""
        return answer

    def physical(self, found: Mapping[str, Any]) -> Physical:
        """What was created, from the members of the request and of its description."""
        raise NotImplementedError

    def key(self, current: Deployed) -> dict[str, Any]:
        """The members that identify the resource in its service."""
        raise NotImplementedError

    def complete(self, key: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        """Set the further properties of a resource that was just created."""

    def call(self, operation: str, members: Mapping[str, Any]) -> Any:
        """Call an operation of the service."""
        return self.api.call(self.service, operation, **members)
