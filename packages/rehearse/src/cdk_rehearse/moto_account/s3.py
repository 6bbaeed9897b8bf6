"""Amazon S3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket, S3Backend

from .differences import Difference, Replacement

_POLICY = Difference(
    FakeBucket,
    "get_permission",
    "decides by the conditions of a bucket policy too (IAM user guide, policy evaluation logic)",
    since="5.0.0",
)
_LOGS = Difference(
    FakeBucket,
    "_log_permissions_enabled_policy",
    "reads the policy of a bucket for access logs when it delivers them; the CDK adds it last",
    since="5.2.0",
)
_DELIVERED = Difference(
    S3Backend,
    "log_incoming_request",
    "delivers access logs hours later, best effort (user guide, server access logging); with an "
    "object for each request of CloudFormation, no log bucket could be deleted",
    since="5.0.0",
)
_RESULTS = {
    True: PermissionResult.PERMITTED,
    False: PermissionResult.DENIED,
    None: PermissionResult.NEUTRAL,
}


def patches() -> list[Replacement]:
    """What needs nothing but moto itself."""
    return [
        _LOGS.replaced_by(lambda *_, **__: True),
        _DELIVERED.replaced_by(lambda *_: None),
    ]


def policies_decided_by(decide: Callable[[Any, str, str], bool | None]) -> Replacement:
    """Decide what a bucket policy says to everybody.

    Args:
        decide: Whether a policy allows an action on a resource; ``None`` if it says nothing.
    """

    def around(_: Any, bucket: Any, action: str, resource: str) -> PermissionResult:
        if bucket.policy is None:
            return PermissionResult.NEUTRAL
        return _RESULTS[decide(bucket.policy, action, resource)]

    return _POLICY.wrapped_by(around)
