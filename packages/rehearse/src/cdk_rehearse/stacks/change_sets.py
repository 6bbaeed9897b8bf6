"""Change sets: what a template would change in a stack."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from constructs_triton_core.cloud_assembly.template import Resource, Template, references

from ..providers import is_custom
from ..providers.provider import different
from ..services.resource_schemas import resource_schema
from .stack import Stack

_REPLACEMENT = {"Never": "False", "Conditionally": "Conditional", "Always": "True"}
_ATTRIBUTES = {"DeletionPolicy": "deletion_policy", "UpdateReplacePolicy": "update_replace_policy"}


@dataclass
class ChangeSet:
    """A change set that can be executed."""

    id: str
    name: str
    stack: Stack
    template: Template
    given: dict[str, str]
    tags: list[dict[str, str]]
    changes: list[dict[str, Any]] = field(default_factory=list)
    status: str = "CREATE_COMPLETE"
    reason: str = ""
    execution_status: str = "AVAILABLE"
    imports: dict[str, str] = field(default_factory=dict)
    created: float = field(default_factory=time.time)

    def fail(self, reason: str) -> None:
        """Mark it as one that cannot be executed."""
        self.status = "FAILED"
        self.execution_status = "UNAVAILABLE"
        self.reason = reason


def resource_changes(
    stack: Stack, template: Template, parameters: Mapping[str, Any], wanted: Collection[str]
) -> list[dict[str, Any]]:
    """The resources to add, modify and remove, with reasons,
    as ``DescribeChangeSet`` lists them.
    """
    walk = _Walk(stack, template, parameters)
    changes = []
    for name in template.order:
        change = walk.change(template.resources[name]) if name in wanted else None
        if change is not None:
            changes.append(change)
    for name, deployed in stack.resources.items():
        if name not in wanted:
            changes.append(_change("Remove", stack, name, deployed.request.type))
    return changes


class _Walk:
    """Visits the resources in order, to find what a replacement affects."""

    def __init__(self, stack: Stack, template: Template, parameters: Mapping[str, Any]) -> None:
        self._stack = stack
        self._template = template
        self._changed_parameters = different(stack.parameters, parameters)
        self._replaced: set[str] = set()

    def change(self, resource: Resource) -> dict[str, Any] | None:
        """Return how a change set shows the change of a resource; ``None`` without one."""
        name = resource.logical_id
        if name not in self._stack.resources:
            return _change("Add", self._stack, name, resource.type)
        old = self._stack.template.resources[name]
        details = [*self._property_details(resource, old), *_attribute_details(resource, old)]
        if not details:
            return None

        recreations = [detail["Target"].get("RequiresRecreation", "Never") for detail in details]
        worst = min(recreations, key=("Always", "Conditionally", "Never").index)
        if worst != "Never":
            self._replaced.add(name)
        return {
            **_change("Modify", self._stack, name, resource.type),
            "Replacement": _REPLACEMENT[worst],
            "Scope": sorted({detail["Target"]["Attribute"] for detail in details}),
            "Details": details,
        }

    def _property_details(self, resource: Resource, old: Resource) -> list[dict[str, Any]]:
        """Return the details of each property that changes, with its cause."""
        details = []
        for name in sorted(resource.properties.keys() | old.properties.keys()):
            new_value = resource.properties.get(name)
            recreation = _recreation(resource.type, name)
            target = {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation}
            if new_value != old.properties.get(name):
                details.append(_detail(target, "Static", "DirectModification"))
            for cause in sorted(references(new_value) & self._replaced):
                details.append(_detail(target, "Dynamic", "ResourceReference", cause))
            for cause in sorted(references(new_value) & self._changed_parameters):
                details.append(_detail(target, "Static", "ParameterReference", cause))
        return details


def _attribute_details(resource: Resource, old: Resource) -> list[dict[str, Any]]:
    changed = [
        name
        for name, field in _ATTRIBUTES.items()
        if getattr(resource, field) != getattr(old, field)
    ]
    return [_detail({"Attribute": name}, "Static", "DirectModification") for name in changed]


def _recreation(type: str, property: str) -> str:
    if is_custom(type):
        return "Never"
    return resource_schema(type).recreation(property)


def _detail(
    target: dict[str, Any], evaluation: str, source: str, cause: str = ""
) -> dict[str, Any]:
    detail = {"Target": target, "Evaluation": evaluation, "ChangeSource": source}
    return {**detail, "CausingEntity": cause} if cause else detail


def _change(action: str, stack: Stack, logical_id: str, type: str) -> dict[str, Any]:
    change = {"Action": action, "LogicalResourceId": logical_id, "ResourceType": type}
    deployed = stack.resources.get(logical_id)
    return change if deployed is None else {**change, "PhysicalResourceId": deployed.physical.id}
