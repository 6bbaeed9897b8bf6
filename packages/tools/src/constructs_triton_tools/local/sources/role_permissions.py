"""What a role of an app may do with S3, according to the app's templates.

Source: the IAM user guide, "Policy evaluation logic": an explicit Deny wins, and what nothing
allows is denied. A condition cannot be evaluated before a deployment, so it is taken to allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.wildcards import matches_wildcards

_ROLE = "AWS::IAM::Role"
_BUCKET_POLICY = "AWS::S3::BucketPolicy"
_MANAGED = "AWS::IAM::ManagedPolicy"
_INLINE = ("AWS::IAM::Policy", "AWS::IAM::RolePolicy")
_S3_ARN = re.compile(r"arn:[^:]*:s3:::")


@dataclass(frozen=True)
class RolePermissions:
    """The statements that apply to a role. ``role`` is its name."""

    role: str
    statements: Sequence[Mapping[str, Any]]

    def allows(self, action: str, location: str) -> bool:
        """Return whether the role may do something with the object at ``s3://bucket/key``."""
        effects = {
            statement.get("Effect")
            for statement in self._of_action(action)
            if _covers(statement, location)
        }
        return effects == {"Allow"}

    def allowed_prefixes(self, action: str) -> list[str]:
        """Return the prefixes ``s3://bucket/prefix/`` below which the role may do something."""
        resources: list[str] = []
        for statement in self._of_action(action):
            if statement.get("Effect") == "Allow":
                resources += _texts(statement.get("Resource"))

        prefixes = []
        for resource in resources:
            prefix = _S3_ARN.sub("s3://", resource.removesuffix("*"))
            is_prefix = resource.endswith("*") and "*" not in prefix
            if is_prefix and prefix.startswith("s3://"):
                prefixes.append(prefix)
        return prefixes

    def _of_action(self, action: str) -> Iterator[Mapping[str, Any]]:
        return (
            statement
            for statement in self.statements
            if _names(statement, "Action", action.lower(), str.lower)
        )


def role_permissions(stacks: Iterable[SynthesizedStack], arn: str) -> RolePermissions | None:
    """Return the permissions of a role; ``None`` if the app does not have the role
    or all of its policies.
    """
    known = list(stacks)
    role = arn.removesuffix(".Arn")
    if role == arn or role not in _created(known, _ROLE):
        return None

    managed = set(_created(known, _MANAGED))
    statements: list[Mapping[str, Any]] = []
    for stack in known:
        for name in stack.created(_ROLE, _BUCKET_POLICY, _MANAGED, *_INLINE):
            properties = stack.known_properties(name)
            # A managed policy that the app does not have may allow anything.
            if name == role and not managed.issuperset(_attached(properties)):
                return None
            statements += _statements(properties, is_role=name == role, role=role)
    return RolePermissions(role, statements)


def _attached(role: Mapping[str, Any]) -> list[str]:
    return [str(policy) for policy in role.get("ManagedPolicyArns", [])]


def _created(stacks: Iterable[SynthesizedStack], resource_type: str) -> list[str]:
    """Return the logical IDs of the resources of a type in all stacks."""
    names = []
    for stack in stacks:
        names += stack.created(resource_type)
    return names


def _statements(
    properties: Mapping[str, Any], *, is_role: bool, role: str
) -> Iterator[Mapping[str, Any]]:
    """Yield what a role's own policies, a policy or a bucket's policy say about the role."""
    if is_role:
        for policy in properties.get("Policies", []):
            yield from policy["PolicyDocument"]["Statement"]
    elif role in (*properties.get("Roles", []), properties.get("RoleName")):
        yield from properties.get("PolicyDocument", {}).get("Statement", [])
    elif "Bucket" in properties:
        for statement in properties["PolicyDocument"]["Statement"]:
            principal = statement.get("Principal")
            principals = principal.get("AWS") if isinstance(principal, dict) else principal
            if {"*", f"{role}.Arn"}.intersection(_texts(principals)):
                yield statement


def _covers(statement: Mapping[str, Any], location: str) -> bool:
    if statement.get("Effect") == "Deny" and "Condition" in statement:
        return False
    return _names(statement, "Resource", location, lambda text: _S3_ARN.sub("s3://", text))


def _names(statement: Mapping[str, Any], key: str, value: str, form: Any) -> bool:
    """Return whether ``Action`` or ``Resource`` of a statement, or its opposite, names a value."""
    if f"Not{key}" in statement:
        return not _matches(_texts(statement[f"Not{key}"]), value, form)
    return _matches(_texts(statement.get(key)), value, form)


def _matches(patterns: Iterable[str], value: str, form: Any) -> bool:
    return any(matches_wildcards(form(pattern), value) for pattern in patterns)


def _texts(value: Any) -> list[str]:
    """Return the strings of a value or a list; what only a deployment knows may be anything."""
    values = value if isinstance(value, list) else [value]
    return [item if isinstance(item, str) else "*" for item in values if item is not None]
