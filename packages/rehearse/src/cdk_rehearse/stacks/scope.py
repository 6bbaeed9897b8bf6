"""The values of names in a template that is deployed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import TemplateError

__all__ = ["Scope"]


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
        """Return an output of another stack; the account has one Region."""
        assert region in (None, self.pseudo["AWS::Region"])
        if (stack, name) not in self.outputs:
            raise TemplateError(f"No output named {name} found in stack {stack}")
        return self.outputs[stack, name]

    def availability_zones(self, region: str) -> list[str]:
        """Return the Availability Zones of a Region."""
        if self.zones_of is None:
            raise TemplateError(f"Fn::GetAZs: the zones of {region} are not known")
        return self.zones_of(region)
