"""Resources that are not simulated: types without a provider, and what a provider does not know.

They succeed without a call. Their physical ID and attributes come from CloudFormation's resource
schemas, and their names are listed in :attr:`ServiceApi.not_simulated`.
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
        names, _ = self._schema.identifying
        is_generated = self._schema.generated_identifier or len(names) != 1
        self.name_property = None if is_generated else names[0][0]

    def create(self, request: Request) -> Physical:
        self.api.note_not_simulated(request.type, request.stack_name, request.logical_id)
        self._remember(request)
        given = request.properties.get(self.name_property or "")
        tail = f"{request.stack_name}-{request.logical_id}-{secrets.token_hex(4)}"
        name, api = self._schema.generated_identifier, self.api
        physical_id = str(given or opaque_value(request.type, name, tail, api.account, api.region))
        return self._physical(physical_id, request, tail)

    def update(self, current: Deployed, request: Request) -> Physical:
        self._remember(request)
        tail = str(getattr(current.physical.attributes, "resource", current.physical.id))
        return self._physical(current.physical.id, request, tail)

    def delete(self, current: Deployed) -> None:
        self.api.opaque.pop((current.request.stack_name, current.request.logical_id), None)

    def _remember(self, request: Request) -> None:
        self.api.opaque[request.stack_name, request.logical_id] = request.type, request.properties

    def _physical(self, physical_id: str, request: Request, tail: str) -> Physical:
        names, generated = self._schema.attributes, self._schema.generated_identifier
        known = {name: value for name, value in request.properties.items() if name in (names or ())}
        if generated:
            known[generated] = physical_id
        attributes = OpaqueAttributes(
            request.type, tail, self.api.account, self.api.region, names, known
        )
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
        simulated = current.physical.is_simulated
        (self._provider if simulated else OpaqueResource(self.api, current.request.type)).delete(
            current
        )


def _untagged(request: Request) -> Request:
    tags = resource_schema(request.type).tag_property
    return replace(request, properties=without(request.properties, tags))
