"""AWS Identity and Access Management: permissions of requests, quotas, and the policies of AWS.

Sources: IAM user guide, "Policy evaluation logic", "IAM and AWS STS quotas" and "IAM JSON policy
elements: Version".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.exceptions import JsonRESTError
from moto.iam.exceptions import LimitExceededException
from moto.iam.models import IAMBackend, ManagedPolicy

from .differences import Difference, Replacement
from .requests import SignedRequest, credential_scope

INLINE_CHARACTERS_OF_ROLE = 10_240
MANAGED_CHARACTERS = 6_144
MANAGED_POLICIES_OF_ROLE = 10

#: The HTTP status of AccessDeniedException: 400 in the JSON protocols of AWS, 403 in its REST
#: protocols.
_JSON_STATUS = {
    **dict.fromkeys(("application-autoscaling", "ecr", "logs", "sagemaker", "ssm"), 400),
    "lambda": 403,
}
_OLDER = "2008-10-17"
#: The policies of AWS by account and Region.
_PARSED: dict[tuple[str, str], list[ManagedPolicy]] = {}

_AUTHORIZE = Difference(
    ActionAuthenticatorMixin,
    "_authenticate_and_authorize_action",
    "decides each request by all policies with their conditions; moto counts requests, enforces "
    "everything or nothing, knows no conditions, and refuses in XML except for S3",
    since="5.2.4",
)
_INLINE_QUOTA = Difference(
    IAMBackend, "put_role_policy", "has a quota for the inline policies of a role", since="5.0.0"
)
_OLDER_VERSION = "takes an inline policy of the version 2008-10-17, which is the default (Version)"
_VERSIONS_OF_ROLES = Difference(IAMBackend, "put_role_policy", _OLDER_VERSION, since="5.0.0")
_VERSIONS_OF_USERS = Difference(IAMBackend, "put_user_policy", _OLDER_VERSION, since="5.0.0")
_VERSIONS_OF_GROUPS = Difference(IAMBackend, "put_group_policy", _OLDER_VERSION, since="5.0.0")
_ATTACHED_QUOTA = Difference(
    IAMBackend,
    "attach_role_policy",
    "has a quota for the managed policies of a role",
    since="5.1.22",
)
_SIZE_QUOTA = Difference(
    IAMBackend, "create_policy", "has a quota for the size of a managed policy", since="5.1.22"
)
_OWN_POLICIES = Difference(
    IAMBackend,
    "_init_aws_policies",
    "(speed) the policies of AWS are parsed once in a process, since that takes half a second",
    since="5.1.22",
)


def patches() -> list[Replacement]:
    """What needs nothing but moto itself."""
    return [
        _VERSIONS_OF_ROLES.wrapped_by(_put_policy(IAMBackend.get_role)),
        _VERSIONS_OF_USERS.wrapped_by(_put_policy(IAMBackend.get_user)),
        _VERSIONS_OF_GROUPS.wrapped_by(_put_policy(IAMBackend.get_group)),
        _INLINE_QUOTA.wrapped_by(_put_role_policy),
        _ATTACHED_QUOTA.wrapped_by(_attach_role_policy),
        _SIZE_QUOTA.wrapped_by(_create_policy),
    ]


def parsed_policies() -> Replacement:
    """Give each account the policies of AWS as they were; to be opened before IAM is used."""
    return _OWN_POLICIES.wrapped_by(_detached)


def authorized_by(
    role_of: Callable[[str], str | None], permits: Callable[[str, SignedRequest], bool]
) -> Replacement:
    """Decide the permissions of requests.

    Args:
        role_of: The role that has an access key ID; a request of another sender passes.
        permits: Whether this role may send a request.
    """

    def authorize(_: Any, response: Any, request_class: Any, resource: str = "*") -> None:
        role = role_of(credential_scope(response.headers)[0])
        if role is None:
            return
        iam_request = _iam_request(response, request_class)
        iam_request.check_signature()
        request = _signed(response, resource)
        if not permits(role, request):
            _deny(iam_request, role, request.service)

    return _AUTHORIZE.wrapped_by(authorize)


def _signed(response: Any, resource: str) -> SignedRequest:
    """Return a request of moto as what policies decide about."""
    scope = credential_scope(response.headers)
    return SignedRequest(
        access_key_id=scope[0],
        service=scope[3],
        action=response._get_action(),
        resource=resource,
        method=response.method,
        path=response.path,
        query=response.querystring,
        headers=response.headers,
        body=response.body,
    )


def _iam_request(response: Any, request_class: Any) -> Any:
    """The request as moto represents it, which can check the signature."""
    query = response.uri.partition("?")[2]
    return request_class(
        account_id=response.current_account,
        method=response.method,
        path=response.raw_path + (f"?{query}" if query else ""),
        data=response.data,
        body=response.raw_body,
        headers=response.headers,
        action=response._get_action(),
    )


def _deny(iam_request: Any, role_arn: str, service: str) -> None:
    """Raise the error of the service's protocol."""
    if service not in _JSON_STATUS:
        iam_request._raise_access_denied()
    message = f"User: {role_arn} is not authorized to perform: {iam_request._action}"
    error = JsonRESTError("AccessDeniedException", message)
    error.code = _JSON_STATUS[service]
    raise error


def size(document: str) -> int:
    """Return the characters that IAM counts: all but white space."""
    return len("".join(document.split()))


def _put_policy(find: Callable[[Any, str], Any]) -> Callable[..., None]:
    """Have moto check an inline policy in the newer version, and keep it as it was sent."""

    def around(
        original: Callable[..., None], backend: Any, owner: str, name: str, text: str
    ) -> None:
        original(backend, owner, name, _in_newer_version(text))
        find(backend, owner).put_policy(name, text)

    return around


def _in_newer_version(text: str) -> str:
    """Return a policy document in the version of the language that moto accepts."""
    try:
        document = json.loads(text)
    except ValueError:
        return text  # which moto refuses
    if not isinstance(document, dict) or document.get("Version", _OLDER) != _OLDER:
        return text
    return json.dumps({**document, "Version": "2012-10-17"})


def _put_role_policy(
    original: Callable[..., None], backend: Any, role: str, name: str, text: str
) -> None:
    documents = {**backend.get_role(role).policies, name: text}
    if sum(map(size, documents.values())) > INLINE_CHARACTERS_OF_ROLE:
        raise LimitExceededException(
            f"Maximum policy size of {INLINE_CHARACTERS_OF_ROLE} bytes exceeded for role {role}"
        )
    original(backend, role, name, text)


def _attach_role_policy(
    original: Callable[..., None], backend: Any, policy_arn: str, role_name: str
) -> None:
    attached = {*backend.get_role(role_name).managed_policies, policy_arn}
    if len(attached) > MANAGED_POLICIES_OF_ROLE:
        raise LimitExceededException(
            f"Cannot exceed quota for PoliciesPerRole: {MANAGED_POLICIES_OF_ROLE}"
        )
    original(backend, policy_arn, role_name)


def _create_policy(
    original: Callable[..., Any], backend: Any, about: str, path: str, *given: Any
) -> Any:
    if size(given[0]) > MANAGED_CHARACTERS:
        raise LimitExceededException(f"Cannot exceed quota for PolicySize: {MANAGED_CHARACTERS}")
    return original(backend, about, path, *given)


def _detached(original: Callable[[Any], list[ManagedPolicy]], backend: Any) -> list[ManagedPolicy]:
    """Return the managed policies of AWS, parsed once, and attached to no role."""
    place = (backend.account_id, backend.region_name)
    if place not in _PARSED:
        _PARSED[place] = original(backend)
    for policy in _PARSED[place]:
        # All that moto changes in them; the account before has ended.
        policy.attachment_count = 0
    return _PARSED[place]
