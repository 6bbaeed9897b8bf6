"""The policies of a role: as IAM stores them, and as far as they have taken effect."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..moto_account.backends import role_named
from ..moto_account.refusals import NoSuchRoleError
from ..services.service_api import ServiceApi
from .policy import parse_policy

_Documents = list[Mapping[str, Any]]


@dataclass
class RolePolicies:
    """Reads what IAM stores directly, since a run asks for policies thousands of times."""

    api: ServiceApi
    _effective: dict[str, dict[str, str]] = field(default_factory=dict)
    """By role, the policies that have taken effect."""
    _missed: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """By role, policy and document, how many requests have missed it."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def trust(self, role_arn: str) -> Mapping[str, Any]:
        """The trust policy of a role."""
        return parse_policy(self._role(role_arn).assume_role_policy_document)

    def stored(self, role_arn: str) -> _Documents:
        """All policies of a role, as IAM lists them."""
        return [parse_policy(document) for document in self._stored(role_arn).values()]

    def boundary(self, role_arn: str) -> Mapping[str, Any] | None:
        """The permissions boundary of a role, unless it exists outside the
        stacks and is not known.
        """
        backend = self.api.backend("iam")
        boundaries = {role.arn: role.permissions_boundary_arn for role in backend.roles.values()}
        policy = backend.managed_policies.get(boundaries.get(role_arn) or "")
        if policy is None:
            return None
        return parse_policy(_default_document(policy))

    def effective(self, role_arn: str) -> _Documents:
        """The policies that decide the next request: one that is new or changed may not take part
        yet.

        A policy that was removed never takes part.
        """
        with self._lock:
            before = self._effective.get(role_arn, {})
            effective = {}
            for name, stored in self._stored(role_arn).items():
                document = self._version(role_arn, name, stored, before)
                if document is not None:
                    effective[name] = document
            self._effective[role_arn] = effective
            return [parse_policy(document) for document in effective.values()]

    def _version(
        self, role_arn: str, name: str, document: str, before: Mapping[str, str]
    ) -> str | None:
        """Return the version of a policy that decides now, which may be the former one."""
        former = before.get(name)
        if former == document:
            return document

        key = (role_arn, name, document)
        self._missed[key] = self._missed.get(key, -1) + 1

        # IAM is eventually consistent: some requests still meet the former policy.
        # The letters at the end of an ARN differ in each run.
        fixed = name.rpartition("-")[0] if name.startswith("arn:") else name
        behaviour = self.api.behaviour
        misses = int(behaviour.draw("propagation", fixed) * (behaviour.propagation + 1))
        return document if self._missed[key] >= misses else former

    def _stored(self, role_arn: str) -> dict[str, str]:
        """The documents of a role's policies, by the name or the ARN of the policy."""
        try:
            role = self._role(role_arn)
        except NoSuchRoleError:  # a session may outlive its role, without any permission
            return {}
        managed = {arn: _default_document(policy) for arn, policy in role.managed_policies.items()}
        return {**role.policies, **managed}

    def _role(self, role_arn: str) -> Any:
        return role_named(self.api.backend("iam"), role_arn.rpartition("/")[2])


def _default_document(policy: Any) -> str:
    (document,) = [version.document for version in policy.versions if version.is_default]
    return str(document)
