"""The policies of keys, buckets, topics and image repositories, which decide together with those of
a role.

Sources: IAM user guide, "Policy evaluation logic" (a Deny in any policy wins; in one account,
either may allow); KMS developer guide, "Troubleshooting key access" (a key policy must allow the
role, or the account, so that the role's own policies count) and "Key states".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..existing import is_assumed_bucket
from ..services.service_api import ServiceApi
from .policy import Decision, Service, parse_policy

_CREATIONS = {"ecr": ("CreateRepository", "repositoryName"), "sns": ("CreateTopic", "Name")}
"""The operations that create a topic or a repository, and their members for the name."""


@dataclass(frozen=True)
class ResourcePolicies:
    """Reads what services store. ``decide`` is :func:`~.policy.decide` with the account's notes."""

    api: ServiceApi
    decide: Callable[..., Decision]

    def allow_role(self, role_arn: str, of_role: Decision, request: Mapping[str, Any]) -> bool:
        """Whether a role may use a resource; ``of_role`` is what the role's own policies decide.

        They decide alone without a policy of the resource, and if it is outside the account's
        stacks.
        """
        resource = request["resource"]
        policy = self._policy(request["action"], resource)
        if policy is None:
            return of_role is Decision.ALLOWED

        account = role_arn.split(":")[4]
        root = role_arn.partition(f":{account}:")[0] + f":{account}:root"
        policies = [parse_policy(policy)]
        for_role = self.decide(policies, principal=role_arn, **request)
        for_account = [self.decide(policies, principal=name, **request) for name in (root, account)]

        is_of_key = request["action"].startswith("kms:")
        if is_of_key and self._key(resource).key_state != "Enabled":
            return False
        if Decision.DENIED in (of_role, for_role, *for_account):
            return False
        if for_role is Decision.ALLOWED:
            return True
        # The role's own policies count for a key only if its policy allows the account.
        counts = not is_of_key or Decision.ALLOWED in for_account
        return counts and of_role is Decision.ALLOWED

    def may_allow_outside(self, role_arn: str, action: str, resource: str) -> bool:
        """Whether a resource is outside of the stacks, and its policy alone may allow a role.

        In the account of the role it may. For a resource of another account, the role needs a
        policy of its own too (IAM user guide, "Cross-account policy evaluation logic"). The ARN of
        a bucket has no account.
        """
        api = self.api
        if not api.assumes_existing:
            return False
        service = action.partition(":")[0]
        if service == "s3":
            name = resource.removeprefix("arn:aws:s3:::").partition("/")[0]
            return is_assumed_bucket(api, name) and self._policy(action, resource) is None

        parts = resource.split(":", 5)
        is_own = len(parts) > 5 and parts[4] == role_arn.split(":")[4]
        return is_own and self._is_never_created(service, parts[5])

    def _is_never_created(self, service: str, name: str) -> bool:
        """Whether no stack has or had a key, a topic or a repository of this name."""
        api = self.api
        if service == "kms":
            return self._key(name) is None
        if service not in _CREATIONS:
            return False

        operation, name_member = _CREATIONS[service]
        own_name = name.removeprefix("repository/")
        for _, called, members in api.calls:
            if called == operation and members.get(name_member) == own_name:
                return False
        return True

    def allow_service(self, service: str, request: Mapping[str, Any]) -> bool:
        """Whether a key of the account lets an AWS service use it.

        A service has a name with its Region and one without (CDK API reference,
        ``ServicePrincipalOpts``).
        """
        key = self._key(request["resource"])
        if key is None:
            return True
        is_allowed = self._lets_service(service, key.policy, request)
        return is_allowed and key.key_state == "Enabled"

    def allow_service_to_publish(self, service: str, request: Mapping[str, Any]) -> bool:
        """Whether the policy of a topic of the account lets an AWS service publish to it."""
        topic = self.api.backend("sns").topics.get(request["resource"])
        return topic is None or self._lets_service(service, topic.policy, request)

    def _lets_service(self, service: str, policy: str | bytes, request: Mapping[str, Any]) -> bool:
        return self.allow_service_in([parse_policy(policy)], service, request)

    def allow_service_in(
        self, documents: Sequence[Mapping[str, Any]], service: str, request: Mapping[str, Any]
    ) -> bool:
        """Whether the policies of a resource let an AWS service use it."""
        names = (service, service.replace(f".{self.api.region}.", "."))
        decisions = [self.decide(documents, principal=Service(name), **request) for name in names]
        return Decision.ALLOWED in decisions and Decision.DENIED not in decisions

    def _policy(self, action: str, resource: str) -> str | bytes | None:
        """The policy of a key, a bucket, a topic or a repository; ``None`` without one."""
        if action.startswith("s3:"):
            name = resource.removeprefix("arn:aws:s3:::").partition("/")[0]
            found: Any = self.api.backend("s3").buckets.get(name)
        elif action.startswith("sns:"):
            found = self.api.backend("sns").topics.get(resource)
        elif action.startswith("ecr:"):
            repositories = self.api.backend("ecr").repositories.values()
            by_arn = {repository.arn: repository for repository in repositories}
            found = by_arn.get(resource)
        else:
            found = self._key(resource)
        return None if found is None else found.policy

    def _key(self, key_arn: str) -> Any:
        return self.api.backend("kms").keys.get(key_arn.rpartition("/")[2])
