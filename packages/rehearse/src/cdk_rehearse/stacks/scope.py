"""The values of names and of dynamic references in a template that is deployed.

A dynamic reference is for example ``{{resolve:ssm:/models/image:2}}`` (CloudFormation user guide, "Get values
stored in other services using dynamic references").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import StackError, TemplateError
from ..opaque_values import opaque_value
from ..services.service_api import ServiceApi

_REFERENCE = re.compile(r"\{\{resolve:(ssm|ssm-secure|secretsmanager):([^{}]+)\}\}")
_BOOTSTRAP = "/cdk-bootstrap/"


@dataclass
class Scope:
    """A resolver: pseudo parameters, parameters, existing resources, exports of other stacks."""

    pseudo: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    physical_ids: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    exports: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The outputs of other stacks, by the names of the stack and the output."""
    other_export: Callable[[str], str] | None = None
    """The value of an export that no stack of this account has. Default: it is an error."""
    other_output: Callable[[str, str, str], str | None] = lambda *_: None
    """The value of an output that no stack here has, by Region, stack and name. Default: it is an error."""
    zones_of: Callable[[str], list[str]] | None = None
    """The Availability Zones of a Region, looked up only if a template uses them."""

    def ref(self, name: str) -> Any:
        """Return the value of a pseudo parameter or parameter, or the physical ID of a resource."""
        for names in (self.pseudo, self.parameters, self.physical_ids):
            if name in names:
                return names[name]
        raise TemplateError(f"Ref: nothing is called {name}, or it was not made because of its condition")

    def get_att(self, logical_id: str, attribute: str) -> Any:
        """Return an attribute of an existing resource."""
        attributes = self.attributes.get(logical_id)
        if attributes is None:
            raise TemplateError(f"Fn::GetAtt: no resource is called {logical_id}")
        if attribute not in attributes:
            raise TemplateError(
                f"Fn::GetAtt: {logical_id} has no attribute {attribute}, only {sorted(attributes)}"
            )
        return attributes[attribute]

    def import_value(self, name: str) -> str:
        """Return the value of an export."""
        if name in self.exports:
            return self.exports[name]
        if self.other_export is None:
            raise TemplateError(f"No export named {name} found")
        return self.other_export(name)

    def stack_output(self, stack: str, name: str, region: str | None) -> str:
        """Return an output of another stack, which can be in another account or Region."""
        here = self.pseudo["AWS::Region"]
        if region in (None, here) and (stack, name) in self.outputs:
            return self.outputs[stack, name]
        found = self.other_output(region or here, stack, name)
        if found is None:
            raise TemplateError(f"No output named {name} found in stack {stack}")
        return found

    def availability_zones(self, region: str) -> list[str]:
        """Return the Availability Zones of a Region."""
        if self.zones_of is None:
            raise TemplateError(f"Fn::GetAZs: the zones of {region} are not known")
        return self.zones_of(region)


def resolve_references(value: Any, api: ServiceApi) -> Any:
    """Replace the references in all strings. What this account does not store is not simulated."""
    if isinstance(value, dict):
        return {name: resolve_references(each, api) for name, each in value.items()}
    if isinstance(value, list):
        return [resolve_references(each, api) for each in value]
    if not isinstance(value, str):
        return value
    return _REFERENCE.sub(lambda found: _value(found[1], found[2], api), value)


def stored_parameter(name: str, api: ServiceApi) -> str:
    """Return the value of an SSM parameter; only that of ``cdk bootstrap`` has to exist in this account."""
    place = (api.account, api.region, name)
    if place in api.passed:
        return api.passed[place]
    try:
        return str(api.call("ssm", "GetParameter", Name=name)["Parameter"]["Value"])
    except StackError:
        if name.startswith(_BOOTSTRAP) and not api.assumes_existing:
            raise
        return _opaque("AWS::SSM::Parameter", name, api)


def _value(service: str, key: str, api: ServiceApi) -> str:
    if service == "ssm":
        return stored_parameter(key, api)
    kind = "AWS::SecretsManager::Secret" if service == "secretsmanager" else "AWS::SSM::Parameter"
    return _opaque(kind, key, api)


def _opaque(kind: str, key: str, api: ServiceApi) -> str:
    api.note_not_simulated(f"value of {kind}", "", key)
    return opaque_value(kind, "", key.rpartition(":")[2], api.account, api.region)
