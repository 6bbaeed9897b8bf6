"""Enforces IAM: the deployed policies decide what a role's credentials may do.

This module enforces the policies of a role for the sessions of :meth:`Access.assume`. The
administrator's requests pass.

Source: IAM user guide, "Policy evaluation logic". A Deny in any policy wins. A permissions boundary
limits what the role's policies grant, and what the policy of a resource grants to the ARN of the
role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from constructs_triton_core.cloud_assembly.template import TRANSFORM
from constructs_triton_core.cloud_assembly.unknown_values import contains_unknown

from ..errors import StackError
from ..moto_account import iam, s3
from ..moto_account.differences import Replacement
from ..moto_account.requests import SignedRequest
from ..services.service_api import ServiceApi, Undecided
from .policy import Decision, PolicyError, Service, decide, parse_policy
from .resource_policies import ResourcePolicies
from .role_policies import RolePolicies
from .s3_needs import Need, S3Needs
from .service_needs import service_needs

_RESULTS = {Decision.ALLOWED: True, Decision.DENIED: False, Decision.NOT_GRANTED: None}
_POLICY_TYPES = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::IAM::RolePolicy")
_TRANSPORT = {"aws:SecureTransport": "true"}  # requests on loopback count as TLS


@dataclass(frozen=True)
class RoleCredentials:
    """Temporary credentials of a role."""

    role_arn: str
    access_key_id: str
    secret_access_key: str
    session_token: str

    def as_environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_SESSION_TOKEN": self.session_token,
        }

    def as_arguments(self) -> dict[str, str]:
        """As boto3.client takes them."""
        return {name.lower(): value for name, value in self.as_environment().items()}


@dataclass
class Access:
    """The sessions whose policies are enforced."""

    api: ServiceApi
    _sessions: dict[str, RoleCredentials] = field(default_factory=dict)
    _by_role: dict[str, RoleCredentials] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.policies = RolePolicies(self.api)
        self.s3_needs = S3Needs(self.api)
        self.resource_policies = ResourcePolicies(self.api, self._decide)

    def assume(self, role_arn: str, *, service: str, context: Mapping[str, str]) -> RoleCredentials:
        """Assume a role as a service; raises ``StackError`` if its trust policy does not allow
        that.

        The first credentials of a role are used again: they do not expire, and its policies are
        read later.
        """
        self.expect_trust(role_arn, service=service, context=context)
        if role_arn in self._by_role:
            return self._by_role[role_arn]

        answer = self.api.client("sts").assume_role(RoleArn=role_arn, RoleSessionName="simulation")
        given = answer["Credentials"]
        credentials = RoleCredentials(
            role_arn, given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"]
        )
        self._by_role[role_arn] = credentials
        self._sessions[credentials.access_key_id] = credentials
        return credentials

    def expect_trust(self, role_arn: str, *, service: str, context: Mapping[str, str]) -> None:
        """Raise ``StackError`` if the trust policy of a role does not let a service assume it."""
        verdict = self._decide(
            [self.policies.trust(role_arn)],
            action="sts:AssumeRole",
            resource=None,
            context=context,
            principal=Service(service),
        )
        if verdict is not Decision.ALLOWED:
            raise StackError(f"{service} is not allowed to assume {role_arn}: {verdict.value}")

    def allows(self, role_arn: str, action: str, resource: str, context: Mapping[str, str]) -> bool:
        """Whether the policies of a role allow an action, once all of them have taken effect.

        What only the policy of a resource outside of the stacks can allow counts as allowed, and is
        one of ``api.undecided``.
        """
        need = (action, resource, context)
        documents = self.policies.stored(role_arn)
        if self._allow(documents, role_arn, need):
            return True
        if not self._may_be_allowed(documents, role_arn, need):
            return False
        self._add_undecided(role_arn, need)
        return True

    def certainly_allows(
        self, role_arn: str, action: str, resource: str, context: Mapping[str, str]
    ) -> bool:
        """Whether the policies of the stacks allow an action of a role."""
        return self._allow(self.policies.stored(role_arn), role_arn, (action, resource, context))

    def _add_undecided(self, role_arn: str, need: Need) -> None:
        action, resource, _ = need
        self.api.undecided.add(Undecided(role_arn, action, resource))

    def _may_be_allowed(
        self, documents: list[Mapping[str, Any]], role_arn: str, need: Need
    ) -> bool:
        """Whether the policy of a resource outside of the stacks may allow what the others do not.

        In one account, either may allow (IAM user guide, "Policy evaluation logic").
        """
        action, resource, _ = need
        request = self._request(role_arn, need)
        boundary = self.policies.boundary(role_arn)
        if boundary is not None and self._decide([boundary], **request) is not Decision.ALLOWED:
            return False
        if self._decide(documents, **request) is Decision.DENIED:
            return False
        return self.resource_policies.may_allow_outside(role_arn, action, resource)

    def _allow(self, documents: list[Mapping[str, Any]], role_arn: str, need: Need) -> bool:
        """Whether the policies of a role, its boundary and those of the resource allow a need."""
        action, _, _ = need
        request = self._request(role_arn, need)
        boundary = self.policies.boundary(role_arn)
        if boundary is not None and self._decide([boundary], **request) is not Decision.ALLOWED:
            return False
        verdict = self._decide(documents, **request)
        if verdict is Decision.NOT_GRANTED and self._has_unknown_policy(role_arn):
            self._note(f"whether a policy that is not simulated allows {action} is not known")
            verdict = Decision.ALLOWED
        return self.resource_policies.allow_role(role_arn, verdict, request)

    def _request(self, role_arn: str, need: Need) -> dict[str, Any]:
        """What policies are asked about a need of a role."""
        action, resource, context = need
        account = self.api.account
        known = {
            **_TRANSPORT,
            "aws:ResourceAccount": account,
            "aws:PrincipalAccount": account,
            "aws:PrincipalArn": role_arn,
            "aws:PrincipalIsAWSService": "false",
            "aws:RequestedRegion": self.api.region,
            "kms:CallerAccount": account,
        }
        return {"action": action, "resource": resource, "context": {**known, **context}}

    def _has_unknown_policy(self, role_arn: str) -> bool:
        """Whether a stack may give a role a policy of which nothing is known."""
        name = role_arn.rpartition("/")[2]
        for resource_type, properties in list(self.api.opaque.values()):
            if resource_type in _POLICY_TYPES:
                roles = properties.get("Roles") or [properties.get("RoleName")]
                if name in roles or TRANSFORM in properties or contains_unknown(roles):
                    return True
        return False

    def _decide(self, documents: list[Mapping[str, Any]], **request: Any) -> Decision:
        """What documents decide; what is not known is noted."""
        return decide(
            documents,
            **request,
            note_unknown=self._note,
            is_unknown=self.api.stand_ins.is_stand_in,
        )

    def _note(self, reason: str) -> None:
        self.api.note_not_simulated("policies:", "", self.api.stand_ins.shown(reason))

    def patches(self) -> list[Replacement]:
        """Enforce the policies while the simulated account runs."""
        return [
            iam.authorized_by(self.role_of, self._permits),
            s3.policies_decided_by(self._of_everybody),
        ]

    def role_of(self, access_key_id: str) -> str | None:
        """The role that sends requests with this access key ID.

        ``None`` if CloudFormation or a user sends them, and not a function.
        """
        session = self._sessions.get(access_key_id)
        return None if session is None else session.role_arn

    def _permits(self, role_arn: str, request: SignedRequest) -> bool:
        """Whether a role may send a signed request."""
        documents = self.policies.effective(role_arn)
        if request.service == "s3":
            needs = list(self.s3_needs.of(request))
        else:
            needs = self._service_needs(request)
        for need in needs:
            if self._allow(documents, role_arn, need):
                continue
            if not self._may_be_allowed(documents, role_arn, need):
                return False
            # What reads a missing object must expect that: its status is another one, 403 or 404.
            if not self.s3_needs.decides_only_the_status(need, request):
                self._add_undecided(role_arn, need)
        return True

    def _service_needs(self, request: SignedRequest) -> list[Need]:
        """The permissions of a request to a service other than S3.

        A user's own function may call services of which the table has nothing. For a function of
        this library, the table has to be complete.
        """
        needs = service_needs(request, self.api)
        if not needs:
            action = f"{request.service}:{request.action}"
            if not self.api.runs_all_functions:
                raise PolicyError(f"no rule says which resource {action} concerns")
            self._note(f"whether {action} is allowed is not known")
        return needs

    def _of_everybody(self, policy: str | bytes, action: str, resource: str) -> bool | None:
        """What the policy of a bucket decides for everybody, with its conditions."""
        decision = decide(
            [parse_policy(policy)],
            action=action,
            resource=resource,
            context=_TRANSPORT,
            note_unknown=lambda _: None,
            is_unknown=self.api.stand_ins.is_stand_in,
        )
        return _RESULTS[decision]
