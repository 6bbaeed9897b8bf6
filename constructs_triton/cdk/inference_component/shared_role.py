"""The execution role of a component endpoint, which the models of its components share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from aws_cdk import Stack
from constructs import Construct, IConstruct

from constructs_triton.cdk.endpoint.execution_role import ExecutionRole
from constructs_triton.cdk.permissions.role_permissions import RolePermissions, accepts_policies
from constructs_triton.cdk.permissions.statements import Statement
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding


class SharedRole:
    """A role and the statements that the endpoint and its components have added to it.

    AWS documentation, "Model and endpoint compatibility": a model of a component must have the role
    of its endpoint. Managed policies are few, so the components of the endpoint's stack share those
    of the endpoint.
    """

    def __init__(
        self,
        scope: Construct,
        execution: ExecutionRole,
        statements: Sequence[Statement] = (),
    ) -> None:
        self.role = execution.role
        self._scope = scope
        self._execution = execution
        self._known: set[str] = set()
        self._sids: dict[str, int] = {}
        self._register(statements)

    @property
    def permissions(self) -> RolePermissions | None:
        """The permissions of the endpoint's stack; ``None`` for a role that takes none."""
        return self._execution.permissions

    @property
    def created(self) -> list[IConstruct]:
        """The role and the permissions that were created in the endpoint's stack."""
        return self._execution.created

    def findings(self) -> Iterator[Finding]:
        """Yield a warning if the role takes no policies."""
        return self._execution.findings()

    def permit(self, scope: Construct, statements: Sequence[Statement]) -> RolePermissions | None:
        """Add the statements of a component, and return what its model must depend on."""
        if Stack.of(scope) is Stack.of(self._scope):
            return self._permit_here(statements)
        found = scope.node.try_find_child("ExecutionPolicy")
        if isinstance(found, RolePermissions):
            found.add(*statements)
            return found
        if not accepts_policies(scope, self.role):
            return None
        # A reference from the endpoint's stack to the component's would be a cycle between the
        # stacks.
        return RolePermissions(scope, "ExecutionPolicy", role=self.role, statements=statements)

    def _permit_here(self, statements: Sequence[Statement]) -> RolePermissions | None:
        """Add permissions to the role in this stack; none of them, if they are too many."""
        known_before = self._known.copy()
        sids_before = self._sids.copy()
        try:
            self._add(statements)
        except InvalidValueError:
            # The role does not have them, so they are still new.
            self._known = known_before
            self._sids = sids_before
            raise
        return self.permissions

    def _add(self, statements: Sequence[Statement]) -> None:
        """Add permissions to the policy of the role, which is created with the first ones."""
        if self.permissions is not None:
            self._execution.add(*self._register(statements))
        elif accepts_policies(self._scope, self.role):
            # An imported endpoint needs no permissions itself, so its first component creates the
            # policy.
            permissions = RolePermissions(
                self._scope,
                "ExecutionPolicy",
                role=self.role,
                statements=self._register(statements),
            )
            self._execution = ExecutionRole(self.role, permissions)

    def _register(self, statements: Sequence[Statement]) -> list[Statement]:
        """Note statements, and return those that are not in the role yet, each with its own id."""
        return [self._with_own_id(each) for each in statements if self._is_new(each)]

    def _is_new(self, statement: Statement) -> bool:
        resolved = Stack.of(self._scope).resolve(statement.to_json())
        key = json.dumps({**resolved, "Sid": None}, sort_keys=True)
        is_new = key not in self._known
        self._known.add(key)
        return is_new

    def _with_own_id(self, statement: Statement) -> Statement:
        sid = statement.sid
        if sid is None:
            return statement
        count = self._sids[sid] = self._sids.get(sid, 0) + 1
        return statement if count == 1 else replace(statement, sid=f"{sid}{count}")
