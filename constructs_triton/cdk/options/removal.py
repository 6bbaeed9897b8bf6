"""The ``removal_policy`` of endpoints and of inference components."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import CfnDeletionPolicy, CfnResource, RemovalPolicy

from constructs_triton.errors import InvalidValueError

__all__ = ["apply_removal_policy", "check_removal_policy"]


def check_removal_policy(policy: RemovalPolicy | None, resources: str) -> None:
    """Check the policy of ``resources``, which are named in the error.

    Raises:
        InvalidValueError: the policy is ``SNAPSHOT``.
    """
    if policy is RemovalPolicy.SNAPSHOT:
        raise InvalidValueError(
            f"removal_policy: {resources} have no snapshots, got SNAPSHOT; use RETAIN or DESTROY"
        )


def apply_removal_policy(
    policy: RemovalPolicy | None, resource: CfnResource, needed: Iterable[CfnResource]
) -> None:
    """Apply a policy to a resource, and keep what a kept resource needs while it exists."""
    if policy is None:
        return
    resource.apply_removal_policy(policy)
    if policy is RemovalPolicy.DESTROY:
        return
    for each in needed:
        each.apply_removal_policy(policy)
        # After an update nothing needs the old one any more.
        each.cfn_options.update_replace_policy = CfnDeletionPolicy.DELETE
