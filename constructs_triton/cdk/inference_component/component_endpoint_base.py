"""The methods of every component endpoint, new or imported."""

from __future__ import annotations

import jsii
from aws_cdk import Resource, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references

from constructs_triton.cdk.endpoint.network import NetworkIds
from constructs_triton.cdk.endpoint.operating import component_log_statement, operating_statements
from constructs_triton.cdk.inference_component.fleet import ComponentCopies
from constructs_triton.cdk.inference_component.fleet_warnings import PlacedComponent
from constructs_triton.cdk.inference_component.shared_role import SharedRole
from constructs_triton.cdk.metrics.metrics import VariantMetrics
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType

__all__ = ["ComponentEndpointBase"]


@jsii.implements(sagemaker_references.IEndpointRef)
class ComponentEndpointBase(VariantMetrics, Resource):
    """An endpoint without a model, on whose instances components are placed.

    It does not implement ``aws_sagemaker.IEndpoint``: constructs that take one call it without the name of a
    component, which SageMaker refuses.
    """

    _endpoint_name: str
    _endpoint_arn: str
    _variant_name: str
    _instance_type: InstanceType
    _shared_role: SharedRole | None
    _network_ids: NetworkIds | None
    _has_network_isolation: bool | None
    _image: TritonImage

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name, a token until the deployment."""
        return self._endpoint_name

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN."""
        return self._endpoint_arn

    @property
    def endpoint_ref(self) -> sagemaker_references.EndpointReference:
        """The reference that other constructs of the CDK use."""
        return sagemaker_references.EndpointReference(endpoint_arn=self._endpoint_arn)

    @property
    def variant_name(self) -> str:
        """The name of the only variant."""
        return self._variant_name

    @property
    def identity(self) -> str | None:
        """The name if it was set: with another one, CloudFormation replaces the endpoint."""
        return self._endpoint_name

    @property
    def instance_type(self) -> InstanceType:
        """The type of the instances."""
        return self._instance_type

    @property
    def image(self) -> TritonImage:
        """The image of components that do not set their own."""
        return self._image

    @property
    def shared_role(self) -> SharedRole:
        """The execution role, which the models of the components must have too.

        Raises:
            InvalidValueError: the endpoint is imported without its role.
        """
        if self._shared_role is None:
            raise InvalidValueError(
                f"{self.node.path}: a component's model must have the role of its endpoint, which is not "
                "known; set role in TritonComponentEndpoint.from_endpoint_attributes"
            )
        return self._shared_role

    @property
    def model_vpc_config(self) -> sagemaker.CfnModel.VpcConfigProperty | None:
        """The VPC that the models of the components must have too."""
        return None if self._network_ids is None else self._network_ids.of_model()

    @property
    def has_network_isolation(self) -> bool | None:
        """The network isolation that the models of the components must have too."""
        return self._has_network_isolation

    def check_component(self, component: ComponentCopies) -> None:
        """Check that a further component fits. The instances of an imported endpoint are not known.

        Args:
            component: The component with its number of copies.
        """

    def add_component(self, component: PlacedComponent, image: TritonImage) -> None:
        """Note a component that was created on the endpoint.

        Args:
            component: The component.
            image: Image of its container.
        """

    def grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Allow a principal some actions on this endpoint.

        To allow calls, use ``grant_invoke`` of a component.

        Args:
            grantee: Who gets the permission.
            *actions: IAM actions, such as ``"sagemaker:DescribeEndpoint"``.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee, actions=list(actions), resource_arns=[self._endpoint_arn]
        )

    def grant_operate(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal what ``constructs-triton status``, ``diagnose`` and ``logs`` need.

        The statements include the log groups of all components of the account and Region. The stack of an
        imported endpoint is not known, so its events are not granted.

        Args:
            grantee: Who gets the permission.
        """
        stack = Stack.of(self)
        statements = operating_statements(
            stack,
            self._endpoint_name,
            self._endpoint_arn,
            is_imported=self.node.default_child is None,
        )
        for statement in (*statements, component_log_statement(stack, "*")):
            grantee.grant_principal.add_to_principal_policy(statement)
        return self.grant(grantee, "sagemaker:DescribeEndpoint")

    def _metric_variant_name(self) -> str:
        return self._variant_name

    def _metric_endpoint_name(self) -> str:
        return self._endpoint_name
