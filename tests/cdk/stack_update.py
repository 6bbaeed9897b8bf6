"""What a stack consists of during an update: after all creations and changes,
before the cleanup phase.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from policy_statements import listed

Resources = dict[str, dict[str, Any]]


class Grant(NamedTuple):
    """One action that a role may use on one resource."""

    role: str
    action: str
    resource: str
    condition: str


def lost_grants(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[Grant]:
    """The grants of the serving roles of ``before`` that end before the cleanup phase."""
    replaced = _replaced(before["Resources"], after["Resources"])
    old = {
        _old(name, replaced): _rename(resource, replaced)
        for name, resource in before["Resources"].items()
    }
    during = before_cleanup(before, after)
    roles = set(_serving_roles(old))
    return set(_grants(old, roles)) - set(_grants(during, roles))


def before_cleanup(before: Mapping[str, Any], after: Mapping[str, Any]) -> Resources:
    """The resources of ``after``, and those of ``before`` that the cleanup phase will delete.

    A resource that is replaced is in the result twice. The old one and all references to it have
    the suffix "(old)".
    """
    replaced = _replaced(before["Resources"], after["Resources"])
    kept = {}
    for name, resource in before["Resources"].items():
        if name in replaced or name not in after["Resources"]:
            kept[_old(name, replaced)] = _rename(resource, replaced)
    return {**after["Resources"], **kept}


def grants_of_serving_roles(template: Mapping[str, Any]) -> set[Grant]:
    """All grants of the roles that models are served with."""
    roles = set(_serving_roles(template["Resources"]))
    return set(_grants(template["Resources"], roles))


# What CloudFormation replaces.


def _replaced(before: Resources, after: Resources) -> frozenset[str]:
    """The logical ids that CloudFormation replaces,
    also because they refer to one that it replaces.
    """
    found: frozenset[str] = frozenset()
    while True:
        more = frozenset(
            name
            for name in before.keys() & after.keys()
            if _is_replaced(before[name], after[name], found)
        )
        if more == found:
            return found
        found = more


def _is_replaced(old: Mapping[str, Any], new: Mapping[str, Any], replaced: frozenset[str]) -> bool:
    """Whether a property changes that only a creation can set; ``replaced`` are other resources."""
    if old["Type"] != new["Type"]:
        return True
    was = _rename(old.get("Properties", {}), replaced)
    return any(
        _value_at(was, path) != _value_at(new.get("Properties", {}), path)
        for path in _create_only(old["Type"])
    )


@cache
def _create_only(type: str) -> tuple[tuple[str, ...], ...]:
    """The paths of the properties of a type that only a creation can set."""
    # Imports SymPy, which only some processes need.
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    if not type.startswith("AWS::") or type == "AWS::CDK::Metadata":
        return ()
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", type).schema
    return tuple(tuple(path.split("/")[2:]) for path in schema.get("createOnlyProperties", ()))


def _value_at(value: Any, path: Sequence[str]) -> Any:
    """The value at a path of a schema, in which "*" stands for the items of a list."""
    if not path or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [_value_at(item, path[1:]) for item in value]
    return _value_at(value.get(path[0]), path[1:])


def _old(name: str, replaced: frozenset[str]) -> str:
    return f"{name} (old)" if name in replaced else name


def _rename(value: Any, replaced: frozenset[str]) -> Any:
    """Return a value in which references to replaced resources have the suffix "(old)"."""
    match value:
        case {"Ref": str(name)}:
            return {"Ref": _old(name, replaced)}
        case {"Fn::GetAtt": [str(name), attribute]}:
            return {"Fn::GetAtt": [_old(name, replaced), attribute]}
        case dict():
            return {key: _rename(member, replaced) for key, member in value.items()}
        case list():
            return [_rename(item, replaced) for item in value]
    return value


# What roles may do.


def _serving_roles(resources: Resources) -> Iterator[str]:
    """The logical IDs of the roles of models that are in the same template."""
    for resource in resources.values():
        if resource["Type"] == "AWS::SageMaker::Model":
            role = resource["Properties"]["ExecutionRoleArn"]
            if isinstance(role, dict) and "Fn::GetAtt" in role:
                yield role["Fn::GetAtt"][0]


def _grants(resources: Resources, roles: set[str]) -> Iterator[Grant]:
    """What the policies of a template allow these roles."""
    for policy in resources.values():
        if policy["Type"] not in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
            continue
        properties = policy["Properties"]
        attached = {role["Ref"] for role in properties.get("Roles", ()) if "Ref" in role}
        for role in attached & roles:
            for statement in properties["PolicyDocument"]["Statement"]:
                yield from _grants_of(role, statement)


def _grants_of(role: str, statement: Mapping[str, Any]) -> Iterator[Grant]:
    """One grant for each action and resource of a statement."""
    assert statement["Effect"] == "Allow"
    condition = json.dumps(statement.get("Condition", {}), sort_keys=True)
    for action in listed(statement["Action"]):
        for resource in listed(statement["Resource"]):
            yield Grant(role, action, json.dumps(resource, sort_keys=True), condition)
