"""What every resource provider is: create, update in place, delete, by calling a service."""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import StackError
from ..service_api import ServiceApi

__all__ = ["Deployed", "Physical", "Provider", "Request", "tags_as_map", "without"]

_ALPHABET = string.ascii_uppercase + string.digits


@dataclass(frozen=True)
class Request:
    """A resource to be made: where it belongs, and its properties without intrinsics."""

    stack_name: str
    stack_id: str
    logical_id: str
    type: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Physical:
    """A resource that is there: what ``Ref`` gives, and what ``Fn::GetAtt`` gives."""

    id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Deployed:
    """A resource of a stack as it stands."""

    request: Request
    physical: Physical
    deletion_policy: str = "Delete"
    update_replace_policy: str = "Delete"

    @property
    def properties(self) -> Mapping[str, Any]:
        return self.request.properties


class Provider:
    """One resource type; a subclass names it and calls the service."""

    type: ClassVar[str]
    name_property: ClassVar[str | None] = None
    """The property that gives the resource a name of its own."""
    name_limit: ClassVar[int] = 63

    def __init__(self, api: ServiceApi) -> None:
        self.api = api

    def create(self, request: Request) -> Physical:
        raise NotImplementedError

    def update(self, current: Deployed, request: Request) -> Physical:
        """Change in place; only asked for changes that force no replacement."""
        changed = sorted(
            name
            for name in current.properties.keys() | request.properties.keys()
            if current.properties.get(name) != request.properties.get(name)
        )
        raise StackError(f"{self.type}: an update of {changed} is not known to this stand-in")

    def delete(self, current: Deployed) -> None:
        raise NotImplementedError

    def name(self, request: Request) -> str:
        """The name from the template, or one made up like CloudFormation's: stack, logical id, 12 letters."""
        given = request.properties.get(self.name_property or "")
        if given:
            return str(given)
        tail = "-" + "".join(secrets.choice(_ALPHABET) for _ in range(12))
        return f"{request.stack_name}-{request.logical_id}"[: self.name_limit - len(tail)] + tail


def without(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The properties but these."""
    return {name: value for name, value in properties.items() if name not in names}


def tags_as_map(tags: list[Mapping[str, str]]) -> dict[str, str]:
    """CloudFormation's list of tags as the map that some services want."""
    return {tag["Key"]: tag["Value"] for tag in tags}
