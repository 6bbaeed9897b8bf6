"""Resources that are not simulated: types without a provider, and what a provider does not know.

They succeed without a call. Their physical ID and attributes come from CloudFormation's resource schemas, and
their names are listed in :attr:`ServiceApi.not_simulated`.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from ..errors import NotSimulatedError
from ..opaque_values import OpaqueAttributes, opaque_value
from ..services.resource_schemas import resource_schema
from ..services.service_api import ServiceApi
from .provider import Deployed, Physical, Provider, Request, without


class OpaqueResource(Provider):
    """A resource of a type without a provider. ``name_property`` is that of the schema."""

    def __init__(self, api: ServiceApi, resource_type: str) -> None:
        super().__init__(api)
        self._schema = resource_schema(resource_type)
        self.name_property = self._schema.name_property

    def create(self, request: Request) -> Physical:
        self.api.note_not_simulated(request.type, request.stack_name, request.logical_id)
        given = request.properties.get(self.name_property or "")
        tail = f"{request.stack_name}-{request.logical_id}-{secrets.token_hex(4)}"
        return self._physical(str(given) if given else self._identifier(request, tail), request, tail)

    def update(self, current: Deployed, request: Request) -> Physical:
        tail = str(getattr(current.physical.attributes, "resource", current.physical.id))
        return self._physical(current.physical.id, request, tail)

    def delete(self, current: Deployed) -> None:
        """Delete nothing."""

    def _identifier(self, request: Request, tail: str) -> str:
        identifier = self._schema.generated_identifier
        return opaque_value(request.type, identifier, tail, self.api.account, self.api.region)

    def _physical(self, physical_id: str, request: Request, tail: str) -> Physical:
        names, generated = self._schema.attributes, self._schema.generated_identifier
        known = {name: value for name, value in request.properties.items() if name in (names or ())}
        if generated:
            known[generated] = physical_id
        attributes = OpaqueAttributes(request.type, tail, self.api.account, self.api.region, names, known)
        return Physical(physical_id, attributes, is_simulated=False)


class Tolerant(Provider):
    """A provider whose resource is not simulated if it uses what the provider does not know."""

    def __init__(self, api: ServiceApi, provider: Provider) -> None:
        super().__init__(api)
        self._provider = provider
        self.name_property = provider.name_property

    def create(self, request: Request) -> Physical:
        try:
            return self._provider.create(request)
        except NotSimulatedError:
            return OpaqueResource(self.api, request.type).create(request)

    def update(self, current: Deployed, request: Request) -> Physical:
        if not current.physical.is_simulated:
            return OpaqueResource(self.api, request.type).update(current, request)
        try:
            return self._provider.update(current, request)
        except NotSimulatedError:
            old, new = _untagged(current.request), _untagged(request)
            if (old, new) != (current.request, request):  # no claim depends on tags
                return self.update(replace(current, request=old), new)
            if old != new:
                what = f"update of {request.type}"
                self.api.note_not_simulated(what, request.stack_name, request.logical_id)
            return current.physical

    def delete(self, current: Deployed) -> None:
        if current.physical.is_simulated:
            self._provider.delete(current)


def _untagged(request: Request) -> Request:
    tags = resource_schema(request.type).tag_property
    return replace(request, properties=without(request.properties, tags))
