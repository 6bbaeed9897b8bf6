"""Permissions that an update of the stack adds before and removes after, never the other way round."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, cast
from weakref import WeakKeyDictionary

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk.permissions.statement_size import POLICY_FRAME, statement_length
from constructs_triton.errors import InvalidValueError

__all__ = ["MOST_CHARACTERS", "RolePermissions", "accepts_policies", "merge_statements"]

# IAM user guide, "IAM and AWS STS quotas": characters of a managed policy, and managed policies of a role.
_POLICY_CHARACTERS = 6_144
_POLICIES_OF_A_ROLE = 10
# During an update a role has the old and the new policies.
_POLICIES_AT_REST = _POLICIES_OF_A_ROLE // 2
MOST_CHARACTERS = _POLICIES_AT_REST * (_POLICY_CHARACTERS - POLICY_FRAME)
"""The characters of all statements that a role can have."""

# What the id of a part of a statement and the brackets of its resources add.
_PART_NUMBER = len("Part99[]")

_DESCRIPTION = "Replaced when its statements change, so that what is running keeps its permissions: {digest}"
# Several endpoints may share one role.
_attached: WeakKeyDictionary[iam.IRole, int] = WeakKeyDictionary()


class RolePermissions(Construct):
    """Permissions of one construct in managed policies, which an update replaces and never changes.

    A policy that changes in place would take a permission away before the endpoint is updated, while the old
    instances still need it. CloudFormation cannot change the description of a managed policy. The description
    contains a digest of the statements and of the role, so CloudFormation creates a new policy before it
    updates what depends on it, and deletes the old one in the cleanup phase, also in a rollback. The logical
    id stays the same, so ``DeletionPolicy`` and ``UpdateReplacePolicy`` have their usual meaning.

    Raises:
        InvalidValueError: the role cannot have that many policies at once.
    """

    def __init__(
        self, scope: Construct, id: str, *, role: iam.IRole, statements: Sequence[iam.PolicyStatement] = ()
    ) -> None:
        super().__init__(scope, id)
        self._role = role
        self._policies: list[iam.ManagedPolicy] = []
        self._statements: list[list[dict[str, Any]]] = []
        self.add(*statements)

    def add(self, *statements: iam.PolicyStatement) -> None:
        """Add statements, in further policies if they do not fit.

        Raises:
            InvalidValueError: the role cannot have that many policies at once.
        """
        stack = Stack.of(self)
        whole = merge_statements(statements)
        for statement in [part for each in whole for part in _parts(each, stack)]:
            self._put(statement, _resolved(stack, statement))
        for policy, contents in zip(self._policies, self._statements, strict=True):
            resource = policy.node.default_child
            if isinstance(resource, iam.CfnManagedPolicy):
                resource.description = self._description([stack.resolve(self._role.role_arn), *contents])

    @property
    def resources(self) -> list[iam.CfnManagedPolicy]:
        """The CloudFormation resources of the policies."""
        return [cast(iam.CfnManagedPolicy, each.node.default_child) for each in self._policies]

    def _put(self, statement: iam.PolicyStatement, resolved: dict[str, Any]) -> None:
        for policy, contents in zip(self._policies, self._statements, strict=True):
            if _policy_length([*contents, resolved]) <= _POLICY_CHARACTERS:
                policy.add_statements(statement)
                contents.append(resolved)
                return
        self._policies.append(self._make_policy(statement))
        self._statements.append([resolved])

    def _make_policy(self, statement: iam.PolicyStatement) -> iam.ManagedPolicy:
        count = _attached.get(self._role, 0) + 1
        if count > _POLICIES_AT_REST:
            raise InvalidValueError(
                f"{self.node.path}: a role can have {_POLICIES_OF_A_ROLE} managed policies, and an update "
                f"doubles them for a while; this role needs more than {_POLICIES_AT_REST} policies of "
                f"{_POLICY_CHARACTERS} characters; use a separate role for each endpoint, or grant the "
                "permissions yourself and set role=role.without_policy_updates()"
            )
        _attached[self._role] = count
        number = len(self._policies) + 1
        name = "Resource" if number == 1 else f"Resource{number}"
        return iam.ManagedPolicy(self, name, roles=[self._role], statements=[statement])

    @staticmethod
    def _description(contents: Sequence[Any]) -> str:
        digest = sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
        return _DESCRIPTION.format(digest=digest[:32])


def accepts_policies(scope: Construct, role: iam.IRole) -> bool:
    """Whether the CDK may add policies to a role that was created elsewhere."""
    # A role does not report whether it is immutable, so an empty policy is attached and removed again.
    policy = iam.Policy(scope, "Probe")
    role.attach_inline_policy(policy)
    resource = policy.node.default_child
    scope.node.try_remove_child("Probe")
    if not isinstance(resource, iam.CfnPolicy):
        return True  # iam.Role.customize_roles: the CDK reports the policies and creates none
    return bool(Stack.of(scope).resolve(resource.roles))


def merge_statements(statements: Sequence[iam.PolicyStatement]) -> list[iam.PolicyStatement]:
    """Merge statements that differ in their resources only, and give each statement its own id.

    IAM refuses a policy in which two statements have the same id.
    """
    merged: dict[str, iam.PolicyStatement] = {}
    for statement in statements:
        allowed = json.dumps([statement.sid, sorted(statement.actions), statement.conditions], sort_keys=True)
        if allowed in merged:
            known = merged[allowed]
            added = [each for each in statement.resources if each not in known.resources]
            merged[allowed] = known.copy(resources=[*known.resources, *added])
        else:
            merged[allowed] = statement
    return _with_distinct_ids(list(merged.values()))


def _with_distinct_ids(statements: Sequence[iam.PolicyStatement]) -> list[iam.PolicyStatement]:
    counts: Counter[str] = Counter()
    result = []
    for statement in statements:
        sid = statement.sid
        if sid is not None:
            counts[sid] += 1
            statement = statement if counts[sid] == 1 else statement.copy(sid=f"{sid}{counts[sid]}")  # noqa: PLW2901
        result.append(statement)
    return result


def _parts(statement: iam.PolicyStatement, stack: Stack) -> Iterator[iam.PolicyStatement]:
    """Split a statement that is too long for one policy between its resources."""
    resolved, resources = _resolved(stack, statement), statement.resources
    if _policy_length([resolved]) <= _POLICY_CHARACTERS:
        yield statement
        return
    frame = statement_length({**resolved, "Resource": ""})
    lengths = [statement_length({**resolved, "Resource": each}) - frame for each in stack.resolve(resources)]
    room = _POLICY_CHARACTERS - POLICY_FRAME - frame - _PART_NUMBER
    for number, part in enumerate(_filled(resources, lengths, room), start=1):
        sid = statement.sid if number == 1 or statement.sid is None else f"{statement.sid}Part{number}"
        yield statement.copy(sid=sid, resources=part)


def _filled(resources: Sequence[str], lengths: Sequence[int], room: int) -> Iterator[list[str]]:
    """Yield the resources in groups that take at most ``room`` characters, in order."""
    part: list[str] = []
    used = 0
    for resource, length in zip(resources, lengths, strict=True):
        taken = length + len('"",')
        if part and used + taken > room:
            yield part
            part, used = [], 0
        part.append(resource)
        used += taken
    yield part


def _resolved(stack: Stack, statement: iam.PolicyStatement) -> dict[str, Any]:
    resolved: dict[str, Any] = stack.resolve(statement.to_statement_json())
    return resolved


def _policy_length(statements: Sequence[dict[str, Any]]) -> int:
    return POLICY_FRAME + sum(statement_length(each) for each in statements) + len(statements) - 1
