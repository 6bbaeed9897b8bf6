"""Attributes that a template asks for, and the schema of the resource does not have.

Source: CloudFormation template reference, ``Fn::GetAtt``: each type has its own attributes. A
schema may be older than an attribute, so that it is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.template import substitutions
from constructs_triton_core.spelling import did_you_mean

from ..services.resource_schemas import resource_schema
from .stack_update import PossibleRefusal, StackUpdate

__all__ = ["attributes_without_schema"]

Attribute = tuple[str, str]
"""The logical ID of a resource, and the name of an attribute."""


def attributes_without_schema(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """An attribute that the schema of its resource lacks, and that OLD does not ask for.

    Source: CloudFormation template reference, ``Fn::GetAtt``.
    """
    deployed = set() if update.old is None else set(_attributes(update.old.template.body))
    asked = dict.fromkeys(_attributes(update.new.template.body))
    for logical_id, attribute in asked:
        resource = update.after.get(logical_id)
        if resource is None or (logical_id, attribute) in deployed:
            continue
        schema = resource_schema(resource.type)
        if not schema.lacks_attribute(attribute):
            continue
        yield PossibleRefusal(
            logical_id,
            f"the template asks for its attribute {attribute}, and the schema of {resource.type} "
            "has none; CloudFormation refuses a template with an unknown attribute",
            did_you_mean(attribute, schema.attributes or (), "use another attribute.")
            + " Run `pip install --upgrade cfn-lint` if the attribute is new",
        )


def _attributes(value: Any) -> Iterator[Attribute]:
    """The attributes in ``Fn::GetAtt`` and ``Fn::Sub``."""
    match value:
        case {"Fn::GetAtt": str(target)} if "." in target:
            logical_id, _, attribute = target.partition(".")
            yield logical_id, attribute
        case {"Fn::GetAtt": [str(logical_id), str(attribute)]}:
            yield logical_id, attribute
        case {"Fn::Sub": str(text)}:
            yield from _substituted(text, {})
        case {"Fn::Sub": [str(text), dict(variables)]}:
            yield from _substituted(text, variables)
            yield from _attributes(variables)
        case dict():
            for member in value.values():
                yield from _attributes(member)
        case list():
            for item in value:
                yield from _attributes(item)


def _substituted(text: str, variables: Mapping[str, Any]) -> Iterator[Attribute]:
    for literal, name in (match.groups() for match in substitutions(text)):
        if not literal and name not in variables and "." in name:
            logical_id, _, attribute = name.partition(".")
            yield logical_id, attribute
