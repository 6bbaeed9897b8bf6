"""IAM's quotas for the policies of a role, which moto does not enforce.

Source: IAM user guide, "IAM and AWS STS quotas, name requirements, and character limits".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.iam.exceptions import LimitExceededException
from moto.iam.models import IAMBackend

from ..replacement import wrapped

INLINE_CHARACTERS_OF_ROLE = 10_240
MANAGED_CHARACTERS = 6_144
MANAGED_POLICIES_OF_ROLE = 10


def patches() -> list[Any]:
    """The checks of all calls that add to a role."""
    return [
        wrapped(IAMBackend, "put_role_policy", _put_role_policy),
        wrapped(IAMBackend, "attach_role_policy", _attach_role_policy),
        wrapped(IAMBackend, "create_policy", _create_policy),
    ]


def size(document: str) -> int:
    """The characters that IAM counts: all but white space."""
    return len("".join(document.split()))


def _put_role_policy(
    original: Callable[..., None], backend: Any, role_name: str, policy_name: str, policy_json: str
) -> None:
    others = {**backend.get_role(role_name).policies, policy_name: policy_json}
    if sum(size(each) for each in others.values()) > INLINE_CHARACTERS_OF_ROLE:
        raise LimitExceededException(
            f"Maximum policy size of {INLINE_CHARACTERS_OF_ROLE} bytes exceeded for role {role_name}"
        )
    original(backend, role_name, policy_name, policy_json)


def _attach_role_policy(original: Callable[..., None], backend: Any, policy_arn: str, role_name: str) -> None:
    if len({*backend.get_role(role_name).managed_policies, policy_arn}) > MANAGED_POLICIES_OF_ROLE:
        raise LimitExceededException(f"Cannot exceed quota for PoliciesPerRole: {MANAGED_POLICIES_OF_ROLE}")
    original(backend, policy_arn, role_name)


def _create_policy(
    original: Callable[..., Any],
    backend: Any,
    description: str,
    path: str,
    policy_document: str,
    *rest: Any,
    **more: Any,
) -> Any:
    if size(policy_document) > MANAGED_CHARACTERS:
        raise LimitExceededException(f"Cannot exceed quota for PolicySize: {MANAGED_CHARACTERS}")
    return original(backend, description, path, policy_document, *rest, **more)
