"""A CloudFormation template as data: its sections, its resources and what depends on what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import yaml  # type: ignore[import-untyped]

from .errors import TemplateError

__all__ = ["Resource", "Template", "references"]

PLACEHOLDER = re.compile(r"\$\{([^!}][^}]*)\}")
_IGNORED_SECTIONS = {"AWSTemplateFormatVersion", "Description", "Metadata"}
_SECTIONS = {"Parameters", "Rules", "Mappings", "Conditions", "Resources", "Outputs"} | _IGNORED_SECTIONS
_RESOURCE_KEYS = {
    "Type",
    "Properties",
    "DependsOn",
    "Condition",
    "DeletionPolicy",
    "UpdateReplacePolicy",
    "Metadata",
}
_POLICIES = {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"}


@dataclass(frozen=True)
class Resource:
    """One resource as declared, with its intrinsic functions."""

    logical_id: str
    type: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    condition: str | None = None
    deletion_policy: str = "Delete"
    update_replace_policy: str = "Delete"

    @classmethod
    def from_declaration(cls, logical_id: str, declaration: Mapping[str, Any]) -> Resource:
        _expect_known(f"Resources.{logical_id}", declaration, _RESOURCE_KEYS)
        if "Type" not in declaration:
            raise TemplateError(f"Resources.{logical_id}: every resource must have a Type")
        given = declaration.get("DependsOn", [])
        resource = cls(
            logical_id=logical_id,
            type=declaration["Type"],
            properties=declaration.get("Properties") or {},
            depends_on=tuple([given] if isinstance(given, str) else given),
            condition=declaration.get("Condition"),
            deletion_policy=declaration.get("DeletionPolicy", "Delete"),
            update_replace_policy=declaration.get("UpdateReplacePolicy", "Delete"),
        )
        for policy in (resource.deletion_policy, resource.update_replace_policy):
            if policy not in _POLICIES:
                raise TemplateError(f"Resources.{logical_id}: unknown policy {policy!r}")
        return resource

    @property
    def references(self) -> set[str]:
        """The logical ids and parameters that this resource refers to or depends on."""
        return references(self.properties) | set(self.depends_on)


class Template:
    """A template whose sections are known and whose references can be resolved."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        _expect_known("template", body, _SECTIONS)
        self.body = body
        self.parameters: Mapping[str, Any] = body.get("Parameters", {})
        self.rules: Mapping[str, Any] = body.get("Rules", {})
        self.mappings: Mapping[str, Any] = body.get("Mappings", {})
        self.conditions: Mapping[str, Any] = body.get("Conditions", {})
        self.outputs: Mapping[str, Any] = body.get("Outputs", {})
        self.resources = {
            name: Resource.from_declaration(name, each) for name, each in body.get("Resources", {}).items()
        }
        self._check_references()

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read JSON, or YAML with CloudFormation's short forms."""
        try:
            body = json.loads(text)
        except ValueError:
            body = yaml.load(text, _ShortForms)  # a SafeLoader with CloudFormation's tags
        if not isinstance(body, dict):
            raise TemplateError("Template format error: unsupported structure")
        return cls(body)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Logical ids, each after those that it depends on, otherwise in the declared order."""
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for name, resource in self.resources.items():
            sorter.add(name, *sorted(resource.references & self.resources.keys()))
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            raise TemplateError(f"Circular dependency between resources: {error.args[1]}") from None

    def _check_references(self) -> None:
        known = self.resources.keys() | self.parameters.keys()
        for name, resource in self.resources.items():
            unresolved = sorted(resource.references - known)
            if unresolved:
                raise TemplateError(
                    f"Template format error: Unresolved resource dependencies {unresolved} "
                    f"in the Resources block of the template ({name})"
                )


def references(value: Any) -> set[str]:
    """The names in ``Ref``, ``Fn::GetAtt`` and ``Fn::Sub``, without pseudo parameters."""
    return {name for name in _references(value) if not name.startswith("AWS::")}


def _references(value: Any) -> Iterator[str]:
    match value:
        case {"Ref": str(name)} if len(value) == 1:
            yield name
        case {"Fn::GetAtt": target} if len(value) == 1:
            yield target.split(".")[0] if isinstance(target, str) else target[0]
        case {"Fn::Sub": str(text)} if len(value) == 1:
            yield from (match[1].split(".")[0] for match in PLACEHOLDER.finditer(text))
        case {"Fn::Sub": [text, variables]} if len(value) == 1:
            yield from _references(variables)
            names = (match[1].split(".")[0] for match in PLACEHOLDER.finditer(text))
            yield from (name for name in names if name not in variables)
        case dict():
            for each in value.values():
                yield from _references(each)
        case list():
            for each in value:
                yield from _references(each)


def _expect_known(where: str, given: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise TemplateError(f"{where}: {', '.join(unknown)} is not supported; supported are {sorted(known)}")


class _ShortForms(yaml.SafeLoader):  # type: ignore[misc]  # untyped
    """YAML in which ``!Sub x`` means ``{"Fn::Sub": "x"}``."""


def _construct_short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_ShortForms.add_multi_constructor("!", _construct_short_form)
# Dates stay strings, such as the policy version "2012-10-17".
_ShortForms.add_constructor("tag:yaml.org,2002:timestamp", yaml.SafeLoader.construct_yaml_str)
