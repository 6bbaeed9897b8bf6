"""Enforces IAM: the deployed policies decide what a role's credentials may do.

moto counts requests and enforces everything or nothing, and knows no conditions. Here exactly the sessions
that were handed out by :meth:`Access.assume` are held to their role's policies; the administrator's requests
pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from urllib.parse import unquote

from moto.core.authorization import ActionAuthenticatorMixin
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket

from .errors import StackError
from .policy import Decision, PolicyError, Service, decide
from .service_api import ServiceApi

__all__ = ["Access", "RoleCredentials"]

_TRANSPORT = {"aws:SecureTransport": "true"}  # requests on loopback count as TLS
_Needs = Iterator[tuple[str, str, Mapping[str, str]]]


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

    def assume(self, role_arn: str, *, service: str, context: Mapping[str, str]) -> RoleCredentials:
        """Assume a role as a service; raises ``StackError`` if its trust policy does not allow that."""
        name = role_arn.rpartition("/")[2]
        trust = self.api.client("iam").get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
        verdict = decide(
            [trust], action="sts:AssumeRole", resource=None, context=context, principal=Service(service)
        )
        if verdict is not Decision.ALLOWED:
            raise StackError(f"{service} is not allowed to assume {role_arn}: {verdict.value}")
        answer = self.api.client("sts").assume_role(RoleArn=role_arn, RoleSessionName="loopback")
        given = answer["Credentials"]
        credentials = RoleCredentials(
            role_arn, given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"]
        )
        self._sessions[credentials.access_key_id] = credentials
        return credentials

    def allows(self, role_arn: str, action: str, resource: str, context: Mapping[str, str]) -> bool:
        """Whether the policies of a role allow an action."""
        verdict = decide(
            self._policies(role_arn), action=action, resource=resource, context={**_TRANSPORT, **context}
        )
        return verdict is Decision.ALLOWED

    def patches(self) -> list[Any]:
        """Patches of moto's permission checks; active while the loopback AWS runs."""
        return [
            mock.patch.object(
                ActionAuthenticatorMixin, "_authenticate_and_authorize_action", self._authorizer()
            ),
            mock.patch.object(FakeBucket, "get_permission", _bucket_permission),
        ]

    def _authorizer(self) -> Callable[..., None]:
        def authorize(request: Any, iam_request_class: Any, resource: str = "*") -> None:
            credentials = self._sessions.get(_access_key_id(request))
            if credentials is None:
                return
            iam_request = _iam_request(request, iam_request_class)
            iam_request.check_signature()
            if not self._permits(credentials.role_arn, request, resource):
                iam_request._raise_access_denied()

        return authorize

    def _permits(self, role_arn: str, request: Any, resource: str) -> bool:
        return all(self.allows(role_arn, *need) for need in self._needs(request, resource))

    def _needs(self, request: Any, resource: str) -> _Needs:
        """The actions of a request, with the resource and context of each."""
        service = _credential_scope(request)[3]
        if service == "s3":
            yield from self._s3_needs(request, resource)
        else:
            yield _other_need(service, request, self.api)

    def _s3_needs(self, request: Any, resource: str) -> _Needs:
        action = request._get_action()
        prefix = request.querystring.get("prefix")
        context = {} if prefix is None else {"s3:prefix": prefix[0]}
        yield f"s3:{action}", resource, context
        source = request.headers.get("x-amz-copy-source")
        if source is not None:
            yield "s3:GetObject", f"arn:aws:s3:::{unquote(source).lstrip('/')}", {}
        if action == "GetObject" and not self._exists(resource):
            # Without permission to list the bucket, S3 answers 403 for a missing key, not 404.
            yield "s3:ListBucket", resource.partition("/")[0], {}

    def _exists(self, resource: str) -> bool:
        bucket, _, key = resource.removeprefix("arn:aws:s3:::").partition("/")
        listed = self.api.client("s3").list_objects_v2(Bucket=bucket, Prefix=key)
        return key in [each["Key"] for each in listed.get("Contents", [])]

    def _policies(self, role_arn: str) -> Iterator[Mapping[str, Any]]:
        iam, name = self.api.client("iam"), role_arn.rpartition("/")[2]
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
            yield iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
        for attached in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
            arn = attached["PolicyArn"]
            version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
            yield iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]


def _other_need(service: str, request: Any, api: ServiceApi) -> tuple[str, str, Mapping[str, str]]:
    action = request._get_action()
    here = f"{api.region}:{api.account}"
    if service == "logs":
        group = json.loads(request.body)["logGroupName"]
        return f"logs:{action}", f"arn:aws:logs:{here}:log-group:{group}:*", {}
    if service == "lambda" and action == "Invoke":
        function = unquote(request.path).split("/functions/")[1].partition("/")[0].rpartition(":")[2]
        return "lambda:InvokeFunction", f"arn:aws:lambda:{here}:function:{function}", {}
    if service == "ecr" and action == "GetAuthorizationToken":
        return "ecr:GetAuthorizationToken", "*", {}
    if service == "ecr":
        wanted = json.loads(request.body)
        account = wanted.get("registryId", api.account)
        return (
            f"ecr:{action}",
            f"arn:aws:ecr:{api.region}:{account}:repository/{wanted['repositoryName']}",
            {},
        )
    if service == "monitoring" and action == "PutMetricData":
        return "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": request._get_param("Namespace")}
    if service in _GUARD_NEEDS:
        return _GUARD_NEEDS[service](action, json.loads(request.body), here)
    raise PolicyError(f"no rule says which resource {service}:{action} concerns")


def _scaling_need(action: str, wanted: Mapping[str, Any], here: str) -> tuple[str, str, Mapping[str, str]]:
    """Describe actions have no resource; others have an ARN that does not contain the endpoint."""
    if action.startswith("Describe"):
        return f"application-autoscaling:{action}", "*", {}
    context = {
        "application-autoscaling:service-namespace": wanted["ServiceNamespace"],
        "application-autoscaling:scalable-dimension": wanted["ScalableDimension"],
    }
    return (
        f"application-autoscaling:{action}",
        f"arn:aws:application-autoscaling:{here}:scalable-target/0123",
        context,
    )


def _endpoint_need(action: str, wanted: Mapping[str, Any], here: str) -> tuple[str, str, Mapping[str, str]]:
    kinds = {
        "DescribeEndpoint": ("endpoint", "EndpointName"),
        "DescribeEndpointConfig": ("endpoint-config", "EndpointConfigName"),
    }
    if action not in kinds:
        raise PolicyError(f"no rule says which resource sagemaker:{action} concerns")
    kind, member = kinds[action]
    return f"sagemaker:{action}", f"arn:aws:sagemaker:{here}:{kind}/{wanted[member]}", {}


def _parameter_need(action: str, wanted: Mapping[str, Any], here: str) -> tuple[str, str, Mapping[str, str]]:
    return f"ssm:{action}", f"arn:aws:ssm:{here}:parameter/{wanted['Name'].lstrip('/')}", {}


_GUARD_NEEDS = {
    "application-autoscaling": _scaling_need,
    "sagemaker": _endpoint_need,
    "ssm": _parameter_need,
}


def _credential_scope(request: Any) -> list[str]:
    authorization = request.headers.get("Authorization", "")
    scope: list[str] = authorization.partition("Credential=")[2].partition(",")[0].split("/")
    return scope


def _access_key_id(request: Any) -> str:
    return _credential_scope(request)[0]


def _iam_request(request: Any, iam_request_class: Any) -> Any:
    """The request as moto represents it, which can check the signature."""
    query = request.uri.partition("?")[2]
    return iam_request_class(
        account_id=request.current_account,
        method=request.method,
        path=request.raw_path + (f"?{query}" if query else ""),
        data=request.data,
        body=request.raw_body,
        headers=request.headers,
        action=request._get_action(),
    )


def _bucket_permission(bucket: Any, action: str, resource: str) -> PermissionResult:
    """A bucket policy with its conditions, which moto ignores."""
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    document = json.loads(bucket.policy)
    verdict = decide([document], action=action, resource=resource, context=_TRANSPORT)
    return {
        Decision.ALLOWED: PermissionResult.PERMITTED,
        Decision.DENIED: PermissionResult.DENIED,
        Decision.NOT_GRANTED: PermissionResult.NEUTRAL,
    }[verdict]
