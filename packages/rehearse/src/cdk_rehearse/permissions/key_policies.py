"""KMS keys of the account: their policies decide first, and then those of the role.

Sources: KMS developer guide, "Troubleshooting key access" (a Deny in any policy wins; a key policy must allow
the role, or the account, so that the role's own policies count) and "Key states".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moto.kms.models import kms_backends

from ..services.service_api import ServiceApi
from .policy import Decision, Service


@dataclass(frozen=True)
class KeyPolicies:
    """Reads moto's store. ``decide`` is :func:`~.policy.decide` with the account's notes."""

    api: ServiceApi
    decide: Callable[..., Decision]

    def is_known(self, key_arn: str) -> bool:
        """Whether the account has the key, so that its policy is known."""
        return self._find(key_arn) is not None

    def allow_role(
        self, role_arn: str, of_role: Decision, *, action: str, resource: str, context: Mapping[str, str]
    ) -> bool:
        """Whether a role may use a key; ``of_role`` is what the role's own policies decide.

        The policy of a key outside the account's stacks is not known, so the role's policies decide alone.
        """
        key = self._find(resource)
        if key is None:
            return of_role is Decision.ALLOWED
        if key.key_state != "Enabled" or of_role is Decision.DENIED:
            return False
        request = {"action": action, "resource": resource, "context": context}
        for_role, for_account = decide_for_role(self.decide, role_arn, parse_policy(key.policy), request)
        is_delegated = for_account is Decision.ALLOWED and of_role is Decision.ALLOWED
        return for_role is Decision.ALLOWED or (is_delegated and for_role is not Decision.DENIED)

    def allow_service(self, service: str, *, action: str, resource: str, context: Mapping[str, str]) -> bool:
        """Whether a key of the account lets an AWS service use it."""
        key = self._find(resource)
        if key is None:
            return True
        decision = self.decide(
            [parse_policy(key.policy)],
            principal=Service(service),
            action=action,
            resource=resource,
            context=context,
        )
        return key.key_state == "Enabled" and decision is Decision.ALLOWED

    def _find(self, key_arn: str) -> Any:
        return kms_backends[self.api.account][self.api.region].keys.get(key_arn.rpartition("/")[2])


def decide_for_role(
    decide: Callable[..., Decision], role_arn: str, document: Mapping[str, Any], request: Mapping[str, Any]
) -> tuple[Decision, Decision]:
    """What the policy of a resource decides for a role, and whether it allows the account.

    A Deny for the account denies the role. An Allow for the account only lets the role's policies decide.
    """
    account = role_arn.split(":")[4]
    root = role_arn.partition(f":{account}:")[0] + f":{account}:root"
    for_role, *of_account = (
        decide([document], principal=each, **request) for each in (role_arn, root, account)
    )
    for_account = Decision.ALLOWED if Decision.ALLOWED in of_account else Decision.NOT_GRANTED
    return (Decision.DENIED if Decision.DENIED in of_account else for_role), for_account


@lru_cache(maxsize=256)
def parse_policy(document: str | bytes) -> Mapping[str, Any]:
    """The policy of a resource, which many requests ask."""
    parsed: Mapping[str, Any] = json.loads(document)
    return parsed
