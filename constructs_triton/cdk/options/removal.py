"""The ``removal_policy`` of endpoints and of inference components."""

from __future__ import annotations

from collections.abc import Iterable

import jsii
from aws_cdk import AspectPriority, Aspects, CfnDeletionPolicy, CfnResource, IAspect, RemovalPolicy
from constructs import IConstruct

from constructs_triton_core.errors import InvalidValueError


def check_removal_policy(policy: RemovalPolicy | None, resources: str) -> None:
    """Check the policy of ``resources``, which are named in the error."""
    if policy is RemovalPolicy.SNAPSHOT:
        raise InvalidValueError(
            f"removal_policy: {resources} have no snapshots, got SNAPSHOT; use RETAIN or DESTROY"
        )


def is_kept(policy: RemovalPolicy | None) -> bool:
    """Return whether resources with this policy stay when the stack is deleted."""
    return policy in (RemovalPolicy.RETAIN, RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)


def apply_removal_policy(
    policy: RemovalPolicy | None, resource: CfnResource, needed: Iterable[IConstruct | None]
) -> None:
    """Apply a policy to a resource, and keep what a kept resource needs while it exists.

    ``needed`` are resources, and constructs such as a role, to which the app may add policies
    later.
    """
    if policy is None:
        return
    resource.apply_removal_policy(policy)
    if not is_kept(policy):
        return
    for each in filter(None, needed):
        Aspects.of(each).add(_Kept(policy), priority=AspectPriority.MUTATING)


@jsii.implements(IAspect)
class _Kept:
    """Keeps all resources of a construct, also those that are created after this Aspect."""

    def __init__(self, policy: RemovalPolicy) -> None:
        self._policy = policy

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, CfnResource):
            node.apply_removal_policy(self._policy)
            # After an update nothing needs the old one any more.
            node.cfn_options.update_replace_policy = CfnDeletionPolicy.DELETE
