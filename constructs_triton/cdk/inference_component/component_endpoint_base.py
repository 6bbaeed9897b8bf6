"""The methods of every component endpoint, new or imported."""

from __future__ import annotations

from collections.abc import Iterable

import jsii
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references

from constructs_triton.cdk.endpoint.operating import component_log_statement
from constructs_triton.cdk.endpoint.sagemaker_endpoint import SageMakerEndpoint
from constructs_triton.cdk.inference_component.component_host import ComponentHost
from constructs_triton_core.facts.instance_types import InstanceType

__all__ = ["ComponentEndpointBase", "host_of"]


@jsii.implements(sagemaker_references.IEndpointRef)
class ComponentEndpointBase(SageMakerEndpoint):
    """An endpoint without a model, on whose instances components are placed.

    To allow calls, use ``grant_invoke`` of a component. The endpoint does not implement
    ``aws_sagemaker.IEndpoint``: constructs that take one call it without the name of a component, which
    SageMaker refuses.
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

    def _more_operating_statements(self) -> Iterable[iam.PolicyStatement]:
        return [component_log_statement(Stack.of(self), "*")]

    def _metric_variant_name(self) -> str:
        return self.variant_name


def host_of(endpoint: ComponentEndpointBase) -> ComponentHost:
    """Return what an endpoint gives to its components."""
    return endpoint._host
