"""Checks that SageMaker may assume a role: its trust policy at synth, and its account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsii
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct, IValidation

from constructs_triton.cdk.permissions.statements import listed
from constructs_triton.cdk.validation.read_once import environment_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_lookup_dummy, is_token

SAGEMAKER = "sagemaker.amazonaws.com"
_ASSUME = {"sts:AssumeRole", "sts:*", "*"}


def check_trust(scope: Construct, role: iam.IRole) -> None:
    """Let synth fail if the trust policy of ``role`` does not allow SageMaker.

    The policy is read at synth, because an app may add statements to it until then. The CDK does
    not know the policy of an imported role, so it is not checked.
    """
    resource = role.node.default_child  # also of a role without policy updates
    if isinstance(resource, iam.CfnRole):
        scope.node.add_validation(_Trust(resource))


def check_account(scope: Construct, role: iam.IRole | None) -> None:
    """Check that a role is in the account of the stack, where the CDK knows both.

    SageMaker gets the role with ``iam:PassRole``, which works only inside of one account. Source:
    AWS re:Post knowledge center, "iam:PassRole" error.
    """
    there = getattr(role, "principal_account", None)
    here = None if there is None else environment_of(scope).account
    if role is None or here is None or there == here or is_token(there) or is_token(here):
        return
    if is_lookup_dummy(role.role_arn):  # iam.Role.from_lookup has a stand-in account at first
        return
    shown = role.node.path if is_token(role.role_arn) else role.role_arn
    raise InvalidValueError(
        f"role: SageMaker can only assume a role in the account of the stack, {here}, got {there} "
        f"({shown}); use a role in {here}, or remove role"
    )


@jsii.implements(IValidation)
class _Trust:
    def __init__(self, role: iam.CfnRole) -> None:
        self._role = role

    def validate(self) -> list[str]:
        """Return an error if no statement of the trust policy allows SageMaker."""
        policy = Stack.of(self._role).resolve(self._role.assume_role_policy_document)
        statements = policy.get("Statement", []) if isinstance(policy, dict) else []
        if not statements or any(map(_allows_sagemaker, statements)):
            return []
        path = self._role.node.path.removesuffix("/Resource")
        others = ", ".join(dict.fromkeys(_names(statements)))
        principal = f'iam.ServicePrincipal("{SAGEMAKER}")'
        return [
            (
                f"role: SageMaker must be allowed to assume the role {path}, got the trust policy "
                f"of {others}; add {principal} to its assumed_by, for example with "
                "iam.CompositePrincipal"
            )
        ]


def _allows_sagemaker(statement: Mapping[str, Any]) -> bool:
    """Whether a statement allows SageMaker, or may do so after the tokens in it are known."""
    if statement["Effect"] != "Allow":
        return False
    if "NotPrincipal" in statement or "NotAction" in statement:
        return True
    principal = statement["Principal"]
    services = principal.get("Service", []) if isinstance(principal, dict) else principal
    may_be_all = "*" in _values(principal) if isinstance(principal, dict) else False
    return _has(statement["Action"], _ASSUME) and (may_be_all or _has(services, {SAGEMAKER, "*"}))


def _has(found: Any, wanted: set[str]) -> bool:
    """Whether a value or a list has a wanted string, or one that only a deployment knows."""
    return any(not isinstance(value, str) or value in wanted for value in listed(found))


def _names(statements: list[Mapping[str, Any]]) -> Iterator[str]:
    for statement in statements:
        for each in _values(statement.get("Principal", {})):
            yield f'"{each}"' if isinstance(each, str) else "another account"


def _values(principal: Mapping[str, Any]) -> Iterator[Any]:
    for each in principal.values():
        yield from listed(each)
