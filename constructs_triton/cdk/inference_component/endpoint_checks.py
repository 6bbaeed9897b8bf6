"""Checks of the endpoint that a component is added to."""

from __future__ import annotations

from aws_cdk import CfnDeletionPolicy, CfnResource, RemovalPolicy, Resource, Stack
from constructs import Construct

from constructs_triton.cdk.inference_component.component_endpoint_base import ComponentEndpointBase
from constructs_triton.cdk.options.removal import is_kept
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token

__all__ = ["check_endpoint", "check_environment", "check_kept", "is_elsewhere"]


def check_endpoint(endpoint: object) -> None:
    """Check that components can be added to an endpoint.

    Raises:
        InvalidValueError: it is not a component endpoint.
    """
    if isinstance(endpoint, ComponentEndpointBase):
        return
    reason = "serves a model" if hasattr(endpoint, "cfn_model") else "is not a component endpoint"
    got = endpoint.node.path if hasattr(endpoint, "node") else shown(endpoint)
    raise InvalidValueError(
        f"endpoint: SageMaker creates components only on endpoints without a model, got {got}, which "
        f"{reason}; create a TritonComponentEndpoint"
    )


def check_environment(scope: Construct, endpoint: ComponentEndpointBase) -> None:
    """Check that an endpoint is in the account and Region of the stack of ``scope``; tokens pass.

    Raises:
        InvalidValueError: it is in another account or Region.
    """
    stack = Stack.of(scope)
    if is_elsewhere(endpoint, stack):
        raise InvalidValueError(
            f"endpoint: must be in the account and Region of the component, {stack.account} and "
            f"{stack.region}, got {endpoint.env.account} and {endpoint.env.region}; create it in a "
            "stack of that account and Region"
        )


def check_kept(scope: Construct, endpoint: ComponentEndpointBase, policy: RemovalPolicy | None) -> None:
    """Check that the stack does not delete the endpoint of a component that it keeps.

    Raises:
        InvalidValueError: the stack deletes the endpoint.
    """
    resource = endpoint.node.default_child
    if (
        not is_kept(policy)
        or Stack.of(scope) is not Stack.of(endpoint)
        or not isinstance(resource, CfnResource)
    ):
        return
    if resource.cfn_options.deletion_policy in (None, CfnDeletionPolicy.DELETE):
        raise InvalidValueError(
            f"removal_policy: RETAIN keeps the component, but its stack deletes {endpoint.node.path}, which "
            "SageMaker refuses while the endpoint has components; set removal_policy=RemovalPolicy.RETAIN on "
            "the endpoint too, or remove removal_policy here"
        )


def is_elsewhere(resource: Resource, stack: Stack) -> bool:
    """Whether a resource is in another account or Region than a stack; tokens are not."""
    there, here = (resource.env.account, resource.env.region), (stack.account, stack.region)
    return any(a != b and not is_token(a) and not is_token(b) for a, b in zip(there, here, strict=True))
