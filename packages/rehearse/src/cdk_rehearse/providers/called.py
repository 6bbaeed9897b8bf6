"""Resource types of which every operation is one call of a service. ``calls.json`` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import StackError
from ..services.service_api import ServiceApi
from .provider import Deployed, Physical, Provider, Request, without


@dataclass(frozen=True)
class _Calls:
    """The calls for one type.

    In ``id``, ``key`` and ``attributes``, ``{VpcId}`` is a property or a member of the response,
    and ``{Ref}`` the physical ID. A property that an operation does not know is not simulated.

    Args:
        id: Physical ID.
        service: Name of the service.
        create: The operation that creates; its members are the properties.
        update: The operation with the same members that updates in place. Default: it is not
            simulated.
        delete: The operation that deletes.
        key: The members that identify the resource.
        attributes: The values of ``Fn::GetAtt``.
        name: The member for the name.
        members: The members that have another name than their properties, by property.
        tagged_as: The type's name in ``TagSpecifications``.
        defaults: Values of properties that a template leaves out, in ``key``.
        later: The operations that set further properties, by property.
    """

    id: str
    service: str = ""
    create: str = ""
    update: str = ""
    delete: str = ""
    key: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    tagged_as: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)
    later: Mapping[str, str] = field(default_factory=dict)


_CALLS = json.loads(Path(__file__).with_name("calls.json").read_text())


class CalledResource(Provider):
    """A resource type of the table."""

    name_limit = 64  # that of schedules, the lowest

    def __init__(self, api: ServiceApi, type: str) -> None:
        super().__init__(api)
        self.type, self._calls = type, _Calls(**_CALLS[type])
        self.name_property = self._calls.name

    def create(self, request: Request) -> Physical:
        calls, members = self._calls, self._members(request, self.name(request))
        answer = self._call(calls.create, members)
        for each in answer.get("Unsuccessful", ()):
            raise StackError(each["Error"]["Message"])
        found = answer.get(calls.create.removeprefix("Create"), answer)
        values = {**vars(self.api), **vars(request), **members, **found}
        physical_id = calls.id.format_map(values)
        attributes = _filled(calls.attributes, {**values, "Ref": physical_id})
        created = Deployed(request, Physical(physical_id, attributes))
        try:
            self._set_later(self._key(created), request.properties)
        except StackError:
            self.delete(created)
            raise
        return created.physical

    def update(self, current: Deployed, request: Request) -> Physical:
        if self._calls.create and not self._calls.update:
            return super().update(current, request)
        self._call(self._calls.update, self._members(request, current.physical.id))
        return current.physical

    def delete(self, current: Deployed) -> None:
        self._call(self._calls.delete, self._key(current))

    def _members(self, request: Request, name: str) -> dict[str, Any]:
        """The members of the operations that create and update."""
        calls, properties = self._calls, without(request.properties, *self._calls.later)
        if calls.tagged_as and (tags := properties.pop("Tags", [])):
            properties["TagSpecifications"] = [{"ResourceType": calls.tagged_as, "Tags": tags}]
        members = {calls.members.get(each, each): value for each, value in properties.items()}
        return {**members, calls.name: name} if calls.name else members

    def _set_later(self, key: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        for name, operation in self._calls.later.items():
            if name in properties:
                self._call(operation, {**key, name: {"Value": properties[name]}})

    def _key(self, current: Deployed) -> dict[str, Any]:
        known = {"Ref": current.physical.id, **current.physical.attributes}
        return dict(
            _filled(self._calls.key, {**self._calls.defaults, **current.properties, **known})
        )

    def _call(self, operation: str, members: Mapping[str, Any]) -> Any:
        return self.api.call(self._calls.service, operation, **members) if operation else {}


def _filled(pattern: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(pattern, dict):
        return {name: _filled(each, values) for name, each in pattern.items()}
    if isinstance(pattern, list):
        return [_filled(each, values) for each in pattern]
    return pattern.format_map(values)


Provider.by_type.update({each: partial(CalledResource, type=each) for each in _CALLS})
