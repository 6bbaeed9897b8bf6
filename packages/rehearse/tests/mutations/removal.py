"""Removes references from a template: the smallest part that the schema of the type does not
require.

This is a property, an item of a list, or a statement of a policy.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from shared_endpoint import Resources

from cdk_rehearse.services.resource_schemas import resource_schema
from constructs_triton_core.cloud_assembly.template import references

Path = tuple[str | int, ...]


def removable(declared: Any, resources: Resources) -> Iterator[Path]:
    """The paths of what can be removed so that a reference is removed."""
    schema = resource_schema(declared["Type"]).body
    found = (
        _optional(schema, path, declared["Properties"])
        for path in _paths(declared["Properties"], resources)
    )
    yield from dict.fromkeys(found)


def _paths(value: Any, resources: Resources, path: Path = ()) -> Iterator[Path]:
    """The paths of the values that refer to a resource."""
    if _is_function(value):
        if references(value) & resources.keys():
            yield path
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(inner, resources, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, resources, (*path, index))


def _is_function(value: Any) -> bool:
    """Whether a value is one intrinsic function."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    (name,) = value
    return str(name).startswith(("Ref", "Fn::"))


def _optional(schema: Mapping[str, Any], path: Path, properties: Any) -> Path:
    """The longest beginning of a path that can be removed;
    a whole property if the schema requires it.
    """
    if "PolicyDocument" in path or "KeyPolicy" in path:
        return path[: path.index("Statement") + 2]
    for length in range(len(path), 0, -1):
        node, value = schema, properties
        for step in path[: length - 1]:
            node, value = _child(schema, node, step), value[step]
        last = path[length - 1]
        if isinstance(last, int) and len(value) > max(1, node.get("minItems", 1)):
            return path[:length]
        if isinstance(last, str) and last not in node.get("required", ()):
            return path[:length]
    return path[:1]


def _child(
    schema: Mapping[str, Any], node: Mapping[str, Any], step: str | int
) -> Mapping[str, Any]:
    found: Any = (
        node.get("items", {}) if isinstance(step, int) else node.get("properties", {}).get(step, {})
    )
    while "$ref" in found:
        target: Any = schema
        for part in found["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        found = target
    return dict(found)


def remove(properties: Any, path: Path) -> None:
    for step in path[:-1]:
        properties = properties[step]
    del properties[path[-1]]


def without(resources: Resources, name: str) -> Resources:
    """The resources without one, and without what refers to it:
    as little of each resource as possible.
    """
    new = copy.deepcopy(resources)
    waiting = [name]
    while waiting:
        gone = waiting.pop()
        new.pop(gone, None)
        for other, declared in list(new.items()):
            if not _forget(declared, gone):
                waiting.append(other)
    return new


def _forget(declared: Any, name: str) -> bool:
    """Remove the references to a resource; false if the schema requires one of them."""
    schema = resource_schema(declared["Type"]).body
    if name in declared.get("DependsOn", ()):
        declared["DependsOn"].remove(name)
    while paths := list(_paths(declared["Properties"], {name: {}})):
        path = _optional(schema, paths[0], declared["Properties"])
        if path[0] in schema.get("required", ()) and len(path) == 1:
            return False
        remove(declared["Properties"], path)
    return True
