"""Permissions that an update of the stack adds before and removes after,
never the other way round.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.permissions.statement_size import POLICY_FRAME, statement_length
from constructs_triton.cdk.permissions.statements import Statement, listed, unlisted
from constructs_triton.cdk.validation.read_once import stack_of
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError

# IAM user guide, "IAM and AWS STS quotas": characters of a managed policy, and managed policies of
# a role.
_POLICY_CHARACTERS = 6_144
_POLICIES_OF_A_ROLE = 10
# During an update a role has the old and the new policies.
_POLICIES_AT_REST = _POLICIES_OF_A_ROLE // 2
#: The characters that the policies of a role can have together.
MOST_CHARACTERS = _POLICIES_AT_REST * _POLICY_CHARACTERS

# What the id of a part of a statement and the brackets of its resources add.
_PART_NUMBER = len("Part99[]")

#: The beginning of a policy's description. A digest follows.
REPLACED_WITH_ITS_STATEMENTS = (
    "Replaced when its statements change, so that what is running keeps its permissions: "
)
# A description has at most 1,000 characters; an ARN has at most 320.
_MOST_REFERENCES = 2
# A token in a string, as the CDK writes it there.
_TOKEN = re.compile(r"\$\{Token\[[^\]]{0,100}\]\}")
_Json = dict[str, Any]
# A statement with tokens, and the same one resolved.
_Part = tuple[_Json, _Json]
# Several endpoints may share one role.
_attached: WeakKeyDictionary[iam.IRole, int] = WeakKeyDictionary()


class RolePermissions(Construct):
    """Permissions of one construct in managed policies, which an update replaces and never changes.

    A policy that changes in place would take a permission away before the endpoint is updated,
    while the old instances still need it. CloudFormation cannot change the description of a managed
    policy. The description contains a digest of the statements and of the role, so CloudFormation
    creates a new policy before it updates what depends on it, and deletes the old one in the
    cleanup phase, also in a rollback. The logical id stays the same, so ``DeletionPolicy`` and
    ``UpdateReplacePolicy`` have their usual meaning.

    An update doubles the policies for a while, so only half of the 10 managed policies that a role
    can have are used.

    Raises:
        InvalidValueError: the role cannot have that many policies.
    """

    def __init__(
        self, scope: Construct, id: str, *, role: iam.IRole, statements: Sequence[Statement] = ()
    ) -> None:
        self._stack = stack_of(scope)
        parts = _resolved_parts(self._stack, statements)
        # Before the construct is added to the tree, so that its id can be used again after an
        # error.
        _check_count(lambda: f"{scope.node.path}/{id}", role, [], parts)
        super().__init__(scope, id)
        mark_as_own(self)
        self._role = role
        self._resolved_role = self._stack.resolve(role.role_arn)
        self._policies: list[iam.ManagedPolicy] = []
        self._statements: list[list[dict[str, Any]]] = []
        self._references: list[dict[str, str]] = []
        self._put(parts)

    def add(self, *statements: Statement) -> None:
        """Add statements, in further policies if they do not fit.

        Raises:
            InvalidValueError: the role cannot have that many policies.
        """
        parts = _resolved_parts(self._stack, statements)
        _check_count(lambda: self.node.path, self._role, self._statements, parts)
        self._put(parts)

    def _put(self, parts: Sequence[_Part]) -> None:
        """Add the parts to the policies, with one call to the CDK for each policy
        and not for each part.
        """
        added: dict[int, list[_Json]] = {}
        for contents, resolved in parts:
            place = _place(self._statements, resolved)
            added.setdefault(place, []).append(contents)
            if place == len(self._statements):
                self._references.append({})
            _add_to(self._statements, place, resolved)
            self._references[place].update(_references(self._stack, contents, resolved))
        for place, statements in added.items():
            whole = [self._resolved_role, *self._statements[place]]
            self._put_into(place, statements, _description(whole, self._references[place]))

    def _put_into(self, place: int, statements: list[_Json], description: str) -> None:
        """Write statements into the policy at a position; the next one is created."""
        if place == len(self._policies):
            _attached[self._role] = _attached.get(self._role, 0) + 1
            name = "Resource" if place == 0 else f"Resource{place + 1}"
            document = iam.PolicyDocument.from_json({"Statement": statements})
            self._policies.append(
                iam.ManagedPolicy(
                    self, name, roles=[self._role], document=document, description=description
                )
            )
            return
        policy = self._policies[place]
        policy.add_statements(*map(iam.PolicyStatement.from_json, statements))
        resource = policy.node.default_child
        if isinstance(resource, iam.CfnManagedPolicy):
            resource.description = description


def _check_count(
    path: Callable[[], str],
    role: iam.IRole,
    present: Sequence[Sequence[dict[str, Any]]],
    parts: Sequence[_Part],
) -> None:
    added = len(_packed(present, parts)) - len(present)
    if added and _attached.get(role, 0) + added > _POLICIES_AT_REST:
        raise InvalidValueError(
            f"{path()}: a role can have {_POLICIES_OF_A_ROLE} managed policies, and an update "
            f"doubles them for a while; this role needs more than {_POLICIES_AT_REST} policies of "
            f"{_POLICY_CHARACTERS} characters; use a separate role for each endpoint, or grant the "
            "permissions yourself and set role=role.without_policy_updates()"
        )


@contextmanager
def removed_after_error(construct: Construct) -> Iterator[None]:
    """Remove a construct from the tree after an error, so that its id can be used again.

    The size of its permissions, and what does not fit into its archive, are known only after other
    resources of the construct have been created.
    """
    try:
        yield
    except ConstructsTritonError:
        assert construct.node.scope is not None
        construct.node.scope.node.try_remove_child(construct.node.id)
        raise


def fits(scope: Construct, statements: Sequence[Statement]) -> bool:
    """Whether a role without other managed policies can have the statements,
    also during an update.
    """
    return len(_packed([], _resolved_parts(stack_of(scope), statements))) <= _POLICIES_AT_REST


def accepts_policies(scope: Construct, role: iam.IRole) -> bool:
    """Whether the CDK may add policies to a role that was created elsewhere."""
    # A lazy role keeps policies until something refers to it, so the probe would find none.
    if isinstance(role, iam.LazyRole):
        return True
    # A role does not report whether it is immutable, so an empty policy is attached and removed
    # again.
    policy = iam.Policy(scope, "Probe")
    role.attach_inline_policy(policy)
    resource = policy.node.default_child
    scope.node.try_remove_child("Probe")
    if not isinstance(resource, iam.CfnPolicy):
        return True  # iam.Role.customize_roles: the CDK reports the policies and creates none
    return bool(stack_of(scope).resolve(resource.roles))


def _merged(statements: Sequence[Statement]) -> Iterable[_Json]:
    """Merge statements that differ in their resources only; return their JSON, which has tokens."""
    merged: dict[str, _Json] = {}
    for statement in statements:
        contents = statement.to_json()
        others = {**contents, "Action": sorted(listed(contents["Action"])), "Resource": None}
        allowed = json.dumps(others, sort_keys=True)
        known = merged.setdefault(allowed, contents)
        known["Resource"] = unlisted((*listed(known["Resource"]), *listed(contents["Resource"])))
    return merged.values()


def _resolved_parts(stack: Stack, statements: Sequence[Statement]) -> list[_Part]:
    """Return the statements in parts that each fit into a policy, with tokens and resolved."""
    merged = list(_with_distinct_ids(_merged(statements)))
    if not merged:
        return []

    # One call to the CDK for all statements.
    parts: list[_Part] = []
    for contents, resolved in zip(merged, stack.resolve(merged), strict=True):
        parts += _parts(contents, resolved)
    return parts


def _packed(
    present: Sequence[Sequence[dict[str, Any]]], parts: Sequence[_Part]
) -> list[list[dict[str, Any]]]:
    """The statements of each policy once the parts have been added."""
    policies = [list(statements) for statements in present]
    for _, resolved in parts:
        _add_to(policies, _place(policies, resolved), resolved)
    return policies


def _with_distinct_ids(statements: Iterable[_Json]) -> Iterator[_Json]:
    """Give each statement its own id: IAM refuses a policy in which two
    statements have the same id.
    """
    counts: Counter[str] = Counter()
    for contents in statements:
        sid = contents.get("Sid", "")
        counts[sid] += 1
        if sid and counts[sid] > 1:
            yield {**contents, "Sid": f"{sid}{counts[sid]}"}
        else:
            yield contents


def _parts(contents: _Json, resolved: _Json) -> Iterator[_Part]:
    """Split a statement that is too long for one policy between its resources."""
    if _policy_length([resolved]) <= _POLICY_CHARACTERS:
        yield contents, resolved
        return

    resources = listed(contents["Resource"])
    resolved_resources = listed(resolved["Resource"])
    frame = statement_length({**resolved, "Resource": ""})
    lengths = [
        statement_length({**resolved, "Resource": resource}) - frame
        for resource in resolved_resources
    ]
    room = _POLICY_CHARACTERS - POLICY_FRAME - frame - _PART_NUMBER
    sid = contents.get("Sid")
    for number, part in enumerate(_filled(lengths, room), start=1):
        named = {}
        if sid is not None:
            named = {"Sid": sid if number == 1 else f"{sid}Part{number}"}
        found = resolved_resources[part]
        yield (
            {**contents, **named, "Resource": resources[part]},
            {**resolved, **named, "Resource": found[0] if len(found) == 1 else found},
        )


def _filled(lengths: Sequence[int], room: int) -> Iterator[slice]:
    """Yield groups of resources that take at most ``room`` characters, in order."""
    begin = 0
    used = 0
    for number, length in enumerate(lengths):
        taken = length + len('"",')
        if number > begin and used + taken > room:
            yield slice(begin, number)
            begin = number
            used = 0
        used += taken
    yield slice(begin, len(lengths))


def _place(policies: Sequence[Sequence[dict[str, Any]]], statement: dict[str, Any]) -> int:
    """Return the index of the first policy that has room, or of a new one."""
    for index, contents in enumerate(policies):
        if _policy_length([*contents, statement]) <= _POLICY_CHARACTERS:
            return index
    return len(policies)


def _add_to(policies: list[list[dict[str, Any]]], place: int, statement: dict[str, Any]) -> None:
    if place == len(policies):
        policies.append([])
    policies[place].append(statement)


def _description(contents: Sequence[Any], references: Mapping[str, str]) -> str:
    digest = sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
    description = f"{REPLACED_WITH_ITS_STATEMENTS}{digest[:32]}"
    # A bucket that is replaced keeps its logical id, so the digest stays the same but its ARN
    # changes.
    shown = list(references.values())[:_MOST_REFERENCES]
    return " ".join([description, *shown])


def _references(stack: Stack, contents: _Json, resolved: _Json) -> Iterator[tuple[str, str]]:
    """Yield the references to other resources, each by its resolved form."""
    resources = zip(listed(contents["Resource"]), listed(resolved["Resource"]), strict=True)
    for resource, value in resources:
        if not _is_reference(value):
            continue

        # A resource may be one token, or a string that contains several.
        tokens = _TOKEN.findall(resource)
        values = [value] if tokens == [resource] else stack.resolve(tokens)
        for token, resolved_token in zip(tokens, values, strict=True):
            if _is_reference(resolved_token):
                yield json.dumps(resolved_token, sort_keys=True), token


def _is_reference(value: Any) -> bool:
    """Whether a resolved value contains a reference to a resource, a parameter or an export."""
    match value:
        case {"Ref": str(name)}:
            return not name.startswith("AWS::")
        case {"Fn::GetAtt": _} | {"Fn::ImportValue": _}:
            return True
        case dict():
            return any(_is_reference(member) for member in value.values())
        case list():
            return any(_is_reference(element) for element in value)
    return False


def _policy_length(statements: Sequence[dict[str, Any]]) -> int:
    commas = len(statements) - 1
    return POLICY_FRAME + commas + sum(statement_length(statement) for statement in statements)
