"""The methods of every component endpoint, and checks of the endpoint that
a component is added to.
"""

from __future__ import annotations

from collections.abc import Iterable

import jsii
from aws_cdk import CfnDeletionPolicy, CfnResource, RemovalPolicy, Stack
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references
from constructs import Construct

from constructs_triton.cdk.endpoint.operating import component_log_statement
from constructs_triton.cdk.endpoint.sagemaker_endpoint import SageMakerEndpoint
from constructs_triton.cdk.inference_component.component_host import ComponentHost
from constructs_triton.cdk.metrics.host_metrics import HostMetrics
from constructs_triton.cdk.options.removal import is_kept
from constructs_triton.cdk.permissions.statements import Statement
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton.cdk.validation.same_environment import is_elsewhere
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType


@jsii.implements(sagemaker_references.IEndpointRef)
class ComponentEndpointBase(HostMetrics, SageMakerEndpoint):
    """An endpoint without a model, on whose instances components are placed.

    To allow calls, use ``grant_invoke`` of a component. The endpoint does not implement
    ``aws_sagemaker.IEndpoint``: constructs that take one call it without the name of a component,
    which SageMaker refuses.
    """

    _host: ComponentHost

    @property
    def variant_name(self) -> str:
        """The name of the only variant."""
        return self._host.variant_name

    @property
    def instance_type(self) -> InstanceType:
        """The type of the instances.

        Raises:
            InvalidValueError: it is not known, because the endpoint was imported without it.
        """
        return self._host.instance_type

    def _operating_statements_of_type(self) -> Iterable[Statement]:
        return [component_log_statement(Stack.of(self), "*")]

    def _metric_variant_name(self) -> str:
        return self.variant_name


def host_of(endpoint: ComponentEndpointBase) -> ComponentHost:
    """Return what an endpoint gives to its components."""
    return endpoint._host


def check_endpoint(endpoint: object) -> None:
    """Check that components can be added to an endpoint."""
    if isinstance(endpoint, ComponentEndpointBase):
        return
    reason = "serves a model" if hasattr(endpoint, "cfn_model") else "is not a component endpoint"
    got = endpoint.node.path if hasattr(endpoint, "node") else shown(endpoint)
    raise InvalidValueError(
        f"endpoint: SageMaker creates components only on endpoints without a model, got {got}, "
        f"which {reason}; create a TritonComponentEndpoint"
    )


def check_environment(scope: Construct, endpoint: ComponentEndpointBase) -> None:
    """Check that an endpoint is in the account and Region of the stack of ``scope``;
    tokens pass.
    """
    stack = Stack.of(scope)
    if is_elsewhere(endpoint, stack):
        raise InvalidValueError(
            f"endpoint: must be in the account and Region of the component, {stack.account} and "
            f"{stack.region}, got {endpoint.env.account} and {endpoint.env.region}; create it in a "
            "stack of that account and Region"
        )


def check_kept(
    scope: Construct, endpoint: ComponentEndpointBase, policy: RemovalPolicy | None
) -> None:
    """Check that the stack does not delete the endpoint of a component that it keeps."""
    resource = endpoint.node.default_child
    if (
        not is_kept(policy)
        or Stack.of(scope) is not Stack.of(endpoint)
        or not isinstance(resource, CfnResource)
    ):
        return
    if resource.cfn_options.deletion_policy in (None, CfnDeletionPolicy.DELETE):
        raise InvalidValueError(
            "removal_policy: RETAIN keeps the component, but its stack deletes "
            f"{endpoint.node.path}, which SageMaker refuses while the endpoint has components; set "
            "removal_policy=RemovalPolicy.RETAIN on the endpoint too, "
            "or remove removal_policy here"
        )
