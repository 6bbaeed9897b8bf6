"""Resources that are not simulated: types without a provider, and what a provider does not know.

They succeed without a call. Their physical ID and attributes come from CloudFormation's resource
schemas, and their names are listed in :attr:`ServiceApi.not_simulated`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from constructs_triton_core.cloud_assembly.template import TRANSFORM
from constructs_triton_core.cloud_assembly.unknown_values import Unknown, contains_unknown

from ..errors import FAILURES, NotSimulatedError
from ..services.resource_schemas import ResourceSchema, resource_schema
from ..services.service_api import ServiceApi
from ..values.stand_ins import Origin, StandIns
from .provider import Deployed, Physical, Provider, Request, ResourceFailedError, without


@dataclass(frozen=True)
class UnknownAttributes(Mapping[str, Any]):
    """The attributes of a resource that is not simulated: those of its type's schema.

    A type without a schema, such as a custom resource, has each attribute that a template asks for.
    """

    schema: ResourceSchema
    origin: Origin
    stand_ins: StandIns
    known: Mapping[str, Any] = field(default_factory=dict)
    """Values that are known, since the template has them."""

    def __getitem__(self, name: str) -> Any:
        """Return a known value, or a stand-in; raises ``KeyError`` for what the schema lacks."""
        if name in self.known:
            return self.known[name]
        names = self.schema.attributes
        if names is not None and name not in names:
            raise KeyError(name)
        kind, like = self.schema.form_of(name)
        return self.stand_ins.attribute(self.origin, name, kind, like)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.known.keys() | (self.schema.attributes or frozenset())))

    def __len__(self) -> int:
        return len(list(iter(self)))


class OpaqueResource(Provider):
    """A resource of a type without a provider. ``name_property`` is that of the schema."""

    def __init__(self, api: ServiceApi, resource_type: str) -> None:
        super().__init__(api)
        self._schema = resource_schema(resource_type)
        names, _ = self._schema.identifying
        self._given_name = names[0][0] if names else None
        is_generated = self._schema.generated_identifier or len(names) != 1
        self.name_property = None if is_generated else self._given_name

    def create(self, request: Request) -> Physical:
        """Note that the type is not simulated, and return stand-ins for its values."""
        self.api.note_not_simulated(request.type, request.stack_name, request.logical_id)
        self._remember(request)
        declared = _certain(request)
        given = str(declared.get(self._given_name or "") or "")

        stand_ins = self.api.stand_ins
        origin = stand_ins.origin(request.type, request.stack_name, request.logical_id, given)
        named = declared.get(self.name_property or "")
        if named:
            return self._physical(_as_text(named), request, origin)
        identifier = stand_ins.reference(origin, self._schema.generated_identifier)
        return self._physical(identifier, request, origin)

    def update(self, current: Deployed, request: Request) -> Physical:
        self._remember(request)
        attributes = current.physical.attributes
        assert isinstance(attributes, UnknownAttributes)
        return self._physical(current.physical.id, request, attributes.origin)

    def delete(self, current: Deployed) -> None:
        self.api.opaque.pop((current.request.stack_name, current.request.logical_id), None)

    def _remember(self, request: Request) -> None:
        self.api.opaque[request.stack_name, request.logical_id] = request.type, request.properties

    def _physical(self, physical_id: str, request: Request, origin: Origin) -> Physical:
        """Return the resource, whose attributes are stand-ins unless the template has them."""
        known = _declared(self._schema, request)
        if self._schema.generated_identifier:
            known[self._schema.generated_identifier] = physical_id
        attributes = UnknownAttributes(self._schema, origin, self.api.stand_ins, known)
        return Physical(physical_id, attributes, is_simulated=False)


def other_attributes(deployed: Deployed, api: ServiceApi) -> Mapping[str, Any]:
    """Return the attributes that the schema of a simulated resource has and its provider lacks."""
    schema = resource_schema(deployed.request.type)
    request = deployed.request
    if schema.attributes is None:
        return {}
    label = f"{request.logical_id}-{deployed.physical.id}"
    origin = api.stand_ins.other_origin(request.type, request.logical_id, label)
    return UnknownAttributes(schema, origin, api.stand_ins, _declared(schema, request))


def _declared(schema: ResourceSchema, request: Request) -> dict[str, Any]:
    """The attributes that are properties of the template."""
    names = schema.attributes or ()
    return {name: value for name, value in _certain(request).items() if name in names}


def _certain(request: Request) -> Mapping[str, Any]:
    """The properties of which a transform changes none."""
    return {} if TRANSFORM in request.properties else request.properties


def _as_text(name: Any) -> str:
    return name if isinstance(name, Unknown) else str(name)


class Tolerant(Provider):
    """A provider whose resource is not simulated if it uses what the provider does not know.

    A refusal that concerns an unknown value says nothing about AWS, which has another value.
    """

    def __init__(self, api: ServiceApi, provider: Provider) -> None:
        super().__init__(api)
        self._provider = provider
        self.name_property = provider.name_property

    def create(self, request: Request) -> Physical:
        """Create the resource, or note that it is not simulated."""
        try:
            with self._not_refusing_stand_ins(request):
                return self._provider.create(request)
        except NotSimulatedError:
            return OpaqueResource(self.api, request.type).create(request)

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update the resource, or note that this update is not simulated."""
        if not current.physical.is_simulated:
            return OpaqueResource(self.api, request.type).update(current, request)
        try:
            with self._not_refusing_stand_ins(request):
                return self._provider.update(current, request)
        except NotSimulatedError:
            old = _untagged(current.request)
            new = _untagged(request)
            has_tags = old != current.request or new != request
            if has_tags:  # no claim depends on tags
                return self.update(replace(current, request=old), new)
            if old != new:
                what = f"update of {request.type}"
                self.api.note_not_simulated(what, request.stack_name, request.logical_id)
            return current.physical

    @contextmanager
    def _not_refusing_stand_ins(self, request: Request) -> Iterator[None]:
        """Raise ``NotSimulatedError`` for errors that stand-ins may cause."""
        if TRANSFORM in request.properties:
            raise NotSimulatedError(f"{request.type}: what {TRANSFORM} makes of its properties")
        try:
            yield
        except FAILURES as error:
            if isinstance(error, NotSimulatedError | ResourceFailedError):
                raise
            if self.api.stand_ins.shown(str(error)) != str(error):
                raise NotSimulatedError(str(error)) from error
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # The provider expects another form than that of a stand-in.
            if contains_unknown(request.properties):
                raise NotSimulatedError(repr(error)) from error
            raise

    def delete(self, current: Deployed) -> None:
        """Delete a resource. What the account lacks of the deletion is noted and fails nothing."""
        request = current.request
        if not current.physical.is_simulated:
            OpaqueResource(self.api, request.type).delete(current)
            return
        try:
            self._provider.delete(current)
        except NotSimulatedError:
            what = f"deletion of {request.type}"
            self.api.note_not_simulated(what, request.stack_name, request.logical_id)


def _untagged(request: Request) -> Request:
    tags = resource_schema(request.type).tag_property
    return replace(request, properties=without(request.properties, tags))
