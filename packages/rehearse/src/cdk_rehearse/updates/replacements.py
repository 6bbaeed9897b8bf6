"""Which resources of a stack an update replaces, computed from the two templates alone.

Source: the resource schemas, ``createOnlyProperties`` and ``conditionalCreateOnlyProperties``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from constructs_triton_core.cloud_assembly.synthesized_stack import (
    NESTED_STACK_TYPE,
    SynthesizedStack,
)
from constructs_triton_core.cloud_assembly.template import Resource, references, value_at
from constructs_triton_core.errors import TemplateError

from ..providers import is_custom
from ..services.resource_schemas import ResourceSchema, resource_schema
from .known_properties import known_properties

__all__ = ["Replacements", "keeps_its_name", "replacements"]

#: The endings of attributes that are other ones after a replacement.
_NAMES = ("Arn", "Id", "Name")

Causes = tuple[str, ...]
"""The properties that replace a resource."""


@dataclass(frozen=True)
class Replacements:
    """The resources that an update replaces.

    Args:
        certain: The properties that replace each resource.
        possible: The properties that may replace each resource that nothing replaces for certain.
    """

    certain: dict[str, Causes] = field(default_factory=dict)
    possible: dict[str, Causes] = field(default_factory=dict)


def replacements(old: SynthesizedStack, new: SynthesizedStack | None) -> Replacements:
    """Compare a stack before and after an update; none if it is deleted."""
    found = Replacements()
    if new is None:
        return found

    before = old.existing()
    after = new.existing()
    # In this order, what contains the name of a resource comes after it.
    for name in _order(new, after):
        if name not in before or name not in after or before[name].type != after[name].type:
            continue
        schema = _schema(after[name])
        if schema is None:
            continue
        change = _Change(old, new, before[name], after[name], schema)
        certain, possible = change.causes(found)
        if certain:
            found.certain[name] = certain
        elif possible:
            found.possible[name] = possible
    return found


def keeps_its_name(type: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a template gives a resource the same name again.

    CloudFormation then refuses to replace it: "cannot update a stack when a custom-named resource
    requires replacing".

    Args:
        type: The type of the resource.
        old: Its properties before the update.
        new: Its properties after the update.
    """
    paths, required = resource_schema(type).identifying
    names = [(value_at(old, path), value_at(new, path)) for path in paths[:required]]
    return bool(names) and all(
        isinstance(before, str) and before == after for before, after in names
    )


@dataclass(frozen=True)
class _Change:
    """One resource before and after the update."""

    old_stack: SynthesizedStack
    new_stack: SynthesizedStack
    old: Resource
    new: Resource
    schema: ResourceSchema

    def causes(self, others: Replacements) -> tuple[Causes, Causes]:
        """The properties that replace it for certain, and those that may do so."""
        before = known_properties(self.old_stack, self.old.logical_id)
        after = known_properties(self.new_stack, self.new.logical_id)
        certain = set()
        possible = self.schema.possibly_replacing_changes(before, after)
        for name in self.schema.replacing_changes(before, after):
            if _differs_for_certain(self.old.properties.get(name), self.new.properties.get(name)):
                certain.add(name)
            else:
                possible.add(name)

        # The name of a resource that is replaced is another one, and so is what contains it.
        for name in self.schema.create_only - certain:
            value = self.new.properties.get(name)
            used = references(value)
            if _is_name(value, others.certain):
                certain.add(name)
            elif used & (others.certain.keys() | others.possible.keys()):
                possible.add(name)
        return tuple(sorted(certain)), tuple(sorted(possible - certain))


def _schema(resource: Resource) -> ResourceSchema | None:
    """The schema of a type that CloudFormation itself creates; ``None`` if it has none."""
    if is_custom(resource.type) or resource.type == NESTED_STACK_TYPE:
        return None
    try:
        return resource_schema(resource.type)
    except TemplateError:  # CloudFormation does not have the type
        return None


def _order(stack: SynthesizedStack, resources: Mapping[str, Resource]) -> Iterator[str]:
    try:
        yield from stack.template.order
    except TemplateError:  # a circle, which CloudFormation refuses
        yield from resources


def _differs_for_certain(old: Any, new: Any) -> bool:
    """Whether two declared values that differ have different values in AWS too.

    A name that a template gives may be the one that a resource has, or that another stack exports.
    """
    if _has_import(old) or _has_import(new):
        return False
    return bool(references(old)) == bool(references(new)) or old is None or new is None


def _has_import(value: Any) -> bool:
    if isinstance(value, Mapping):
        names = ("Fn::ImportValue", "Fn::GetStackOutput")
        return any(name in value for name in names) or any(map(_has_import, value.values()))
    return isinstance(value, list) and any(map(_has_import, value))


def _is_name(value: Any, replaced: Mapping[str, Causes]) -> bool:
    """Whether a value contains the physical ID, the ARN or the name of one of these resources."""
    match value:
        case {"Ref": str(name)}:
            return name in replaced
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return name in replaced and attribute.endswith(_NAMES)
        case {"Fn::GetAtt": str(target)}:
            name, _, attribute = target.partition(".")
            return name in replaced and attribute.endswith(_NAMES)
        case Mapping():
            return any(_is_name(member, replaced) for member in value.values())
        case list():
            return any(_is_name(element, replaced) for element in value)
    return False
