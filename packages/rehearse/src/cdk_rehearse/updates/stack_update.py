"""One stack before and after an update, as far as the two templates show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Resource

from .known_properties import known_properties

__all__ = ["PossibleRefusal", "StackUpdate"]


class PossibleRefusal(NamedTuple):
    """A step that a service may refuse.

    Args:
        logical_id: Logical ID of the resource.
        message: What may be refused, and why.
        fix: How to make sure that it is not.
    """

    logical_id: str
    message: str
    fix: str


@dataclass(frozen=True)
class StackUpdate:
    """A stack before and after an update.

    Args:
        old: The stack before; ``None`` if the update creates it.
        new: The stack after the update.
    """

    old: SynthesizedStack | None
    new: SynthesizedStack

    @cached_property
    def before(self) -> Mapping[str, Resource]:
        """The resources before the update."""
        return {} if self.old is None else self.old.existing()

    @cached_property
    def after(self) -> Mapping[str, Resource]:
        """The resources after it."""
        return self.new.existing()

    def of_type(self, *types: str) -> Iterator[Resource]:
        """Yield the resources of these types after the update."""
        for resource in self.after.values():
            if resource.type in types:
                yield resource

    def kept(self, *types: str) -> Iterator[tuple[Resource, Mapping[str, Any], Mapping[str, Any]]]:
        """Yield the resources that both versions have, with their properties."""
        for resource in self.of_type(*types):
            former = self.before.get(resource.logical_id)
            if former is not None and former.type == resource.type:
                name = resource.logical_id
                yield resource, self.old_properties(name), self.new_properties(name)

    def old_properties(self, logical_id: str) -> Mapping[str, Any]:
        """The known properties of a resource before the update; none of one that is new."""
        if self.old is None or logical_id not in self.before:
            return {}
        return known_properties(self.old, logical_id)

    def new_properties(self, logical_id: str) -> Mapping[str, Any]:
        """The known properties of a resource after the update."""
        return known_properties(self.new, logical_id)

    def needs(self, logical_id: str) -> set[str]:
        """All resources that one needs, directly or through others."""
        found: set[str] = set()
        waiting = [logical_id]
        while waiting:
            references = self.after[waiting.pop()].references & self.after.keys()
            waiting += references - found
            found |= references
        return found
