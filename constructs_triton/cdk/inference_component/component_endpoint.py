"""``TritonComponentEndpoint``: an endpoint whose instances several models share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack, cast

import jsii
from aws_cdk import Aspects
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references
from constructs import Construct

from constructs_triton.cdk.endpoint.execution_role import (
    ExecutionRole,
    host_statements,
    observability_statements,
)
from constructs_triton.cdk.endpoint.imported_endpoint import name_and_arn
from constructs_triton.cdk.endpoint.network import (
    check_network,
    make_connections,
    network_ids,
    require_connections,
)
from constructs_triton.cdk.inference_component.component_endpoint_base import ComponentEndpointBase
from constructs_triton.cdk.inference_component.endpoint_properties import (
    ComponentEndpointOptions,
    checked_endpoint_options,
)
from constructs_triton.cdk.inference_component.fleet import ComponentCopies, Fleet
from constructs_triton.cdk.inference_component.fleet_warnings import (
    FleetWarnings,
    PlacedComponent,
    ami_findings,
    region_warnings,
)
from constructs_triton.cdk.inference_component.imported import ImportedComponentEndpoint
from constructs_triton.cdk.inference_component.shared_role import SharedRole
from constructs_triton.cdk.options.host_options import HostOptions
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.removal import apply_removal_policy
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.validation.property_documentation import takes_options
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.inference_ami import default_inference_ami, given_ami_version
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.findings import Finding
from constructs_triton.tokens import is_token

__all__ = ["TritonComponentEndpoint"]

_Config = sagemaker.CfnEndpointConfig


@jsii.implements(sagemaker_references.IEndpointRef, iam.IGrantable, ec2.IConnectable)
@takes_options(ComponentEndpointOptions)
class TritonComponentEndpoint(ComponentEndpointBase):
    """An endpoint whose instances several models share, each a ``TritonInferenceComponent``.

    SageMaker adds instances when copies of components do not fit, and removes them when they are idle. With
    ``min_instance_count=0`` and components that scale to zero, nothing runs at night. After an error, nothing
    has been added to the stack.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a property has the wrong type, is out of range, or is not supported on endpoints
            with components.
    """

    def __init__(self, scope: Construct, id: str, **options: Unpack[ComponentEndpointOptions]) -> None:
        checked = checked_endpoint_options(options)
        min_instance_count = checked["min_instance_count"]
        findings = [*check_network(checked), *region_warnings(scope, min_instance_count)]
        super().__init__(scope, id, physical_name=checked["endpoint_name"])
        self._options = checked
        self._variant_name = cast(str, checked["variant_name"])
        self._instance_type = checked["instance_type"]
        self._image = checked["image"] or TritonImage.dlc()
        self._has_network_isolation = checked["enable_network_isolation"]
        self._connections = make_connections(self, checked)
        self._network_ids = network_ids(checked, self._connections)
        self._components: list[PlacedComponent] = []
        self._images: list[TritonImage] = [] if checked["image"] is None else [self._image]
        self._shared_role = self._make_role()
        self._cfn_endpoint_config = self._make_endpoint_config()
        self._cfn_endpoint = self._make_endpoint()
        needed = [self._cfn_endpoint_config, *self.shared_role.resources]
        apply_removal_policy(checked["removal_policy"], self._cfn_endpoint, needed=needed)
        annotate(self, findings)
        Aspects.of(self).add(
            FleetWarnings(self, self.fleet, min_instance_count, self._components, self._ami_findings)
        )

    # Endpoints that exist already.

    @classmethod
    def from_endpoint_name(cls, scope: Construct, id: str, endpoint_name: str) -> ImportedComponentEndpoint:
        """Refer to an endpoint of this account and Region with the variant ``"AllTraffic"``.

        Args:
            endpoint_name: Name of the endpoint.
        """
        return cls.from_endpoint_attributes(scope, id, endpoint_name=endpoint_name)

    @classmethod
    def from_endpoint_arn(cls, scope: Construct, id: str, endpoint_arn: str) -> ImportedComponentEndpoint:
        """Refer to an endpoint by its ARN, also in another account or Region.

        Args:
            endpoint_arn: ARN of the endpoint.
        """
        return cls.from_endpoint_attributes(scope, id, endpoint_arn=endpoint_arn)

    @classmethod
    def from_endpoint_attributes(
        cls,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str | None = None,
        endpoint_arn: str | None = None,
        variant_name: str = "AllTraffic",
        instance_type: InstanceType | None = None,
        **host: Unpack[HostOptions],
    ) -> ImportedComponentEndpoint:
        """Refer to an endpoint by its name or its ARN.

        To add components, set ``instance_type``, ``role`` and, as they are on the endpoint, ``vpc``,
        ``vpc_subnets``, ``security_groups`` and ``enable_network_isolation``: the models of the components
        must have the same.

        Args:
            endpoint_name: Name of an endpoint of this account and Region; instead of ``endpoint_arn``.
            endpoint_arn: ARN of the endpoint; instead of ``endpoint_name``.
            variant_name: Name of its variant.
            instance_type: Type of the instances. Default: not known.
            **host: Role and network of the endpoint, as in the constructor.

        Raises:
            TypeError: there is no such property.
            InvalidValueError: both or neither of name and ARN are given, or a value is invalid.
        """
        name, arn = name_and_arn(scope, endpoint_name, endpoint_arn)
        return ImportedComponentEndpoint(
            scope,
            id,
            endpoint_name=name,
            endpoint_arn=arn,
            variant_name=variant_name,
            instance_type=instance_type,
            host=host,
        )

    # Its parts.

    @property
    def endpoint_ref(self) -> sagemaker_references.EndpointReference:
        """The reference that other constructs of the CDK use."""
        return self._cfn_endpoint.endpoint_ref

    @property
    def identity(self) -> str | None:
        """The name if it was set: with another one, CloudFormation replaces the endpoint."""
        return self._options["endpoint_name"]

    @property
    def cfn_endpoint(self) -> sagemaker.CfnEndpoint:
        """The ``AWS::SageMaker::Endpoint``, also ``node.default_child``."""
        return self._cfn_endpoint

    @property
    def cfn_endpoint_config(self) -> sagemaker.CfnEndpointConfig:
        """The ``AWS::SageMaker::EndpointConfig``. It has no name, since changes replace it."""
        return self._cfn_endpoint_config

    @property
    def role(self) -> iam.IRole:
        """The execution role of the endpoint and of the models of its components."""
        return self.shared_role.role

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The principal of grants on other resources: the execution role."""
        return self.role.grant_principal

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of all components.

        Raises:
            InvalidValueError: the endpoint has no ``vpc``.
        """
        return require_connections(self, self._connections)

    @property
    def fleet(self) -> Fleet:
        """The instances at the maximum of their number."""
        return Fleet(self._instance_type, self._options["max_instance_count"])

    # What components call.

    def check_component(self, component: ComponentCopies) -> None:
        """Check that the copies of a further component fit beside those of the others.

        Raises:
            InvalidValueError: the instances at their maximum number do not have enough for all copies.
        """
        shortage = self.fleet.shortage([*(each.initial for each in self._components), component])
        if shortage is not None:
            raise InvalidValueError(
                f"{self.node.path}: the first copies of its components {shortage.reason}; raise "
                "max_instance_count, use a larger instance type, or lower copy_count or the reservations:\n"
                f"{shortage.table}"
            )

    def add_component(self, component: PlacedComponent, image: TritonImage) -> None:
        """Note a component that was created on the endpoint, and choose the AMI for all images again."""
        self._components.append(component)
        if component.construct.uses_gpus is not False:  # the AMI matters for its GPU driver only
            self._images.append(image)
        self._cfn_endpoint_config.production_variants = [self._production_variant()]

    # Creation.

    def _make_role(self) -> SharedRole:
        statements = [*observability_statements(self, has_components=True), *host_statements(self._options)]
        return SharedRole(self, ExecutionRole.make(self, statements, self._options["role"]), statements)

    def _make_endpoint_config(self) -> sagemaker.CfnEndpointConfig:
        key, metrics = self._options["encryption_key"], self._options["metrics_config"]
        ids = self._network_ids
        config = _Config(
            self,
            "EndpointConfig",
            execution_role_arn=self.role.role_arn,
            production_variants=[self._production_variant()],
            enable_network_isolation=self._has_network_isolation,
            vpc_config=None
            if ids is None
            else _Config.VpcConfigProperty(security_group_ids=ids.security_group_ids, subnets=ids.subnets),
            kms_key_id=None if key is None else key.key_arn,
            metrics_config=None if metrics is None else metrics.render(),
        )
        if self.shared_role.permissions is not None:
            config.node.add_dependency(self.shared_role.permissions)
        return config

    def _production_variant(self) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
        options = self._options
        volume_size = options["volume_size"]
        # It has no model_name and no initial_variant_weight, which are for endpoints with a model.
        return _Config.ProductionVariantProperty(
            variant_name=self._variant_name,
            instance_type=self._instance_type.name,
            initial_instance_count=options["initial_instance_count"],
            inference_ami_version=self._inference_ami_version(),
            volume_size_in_gb=None if volume_size is None else volume_size.to_gibibytes(),
            managed_instance_scaling=_Config.ManagedInstanceScalingProperty(
                status="ENABLED",
                min_instance_count=options["min_instance_count"],
                max_instance_count=options["max_instance_count"],
            ),
            routing_config=_Config.RoutingConfigProperty(routing_strategy=options["routing_strategy"]),
        )

    def _inference_ami_version(self) -> str | None:
        if "inference_ami_version" in self._options:
            return given_ami_version(self._options["inference_ami_version"])
        return default_inference_ami(_newest(self._images or [self._image]), self._instance_type).version

    def _ami_findings(self) -> Iterator[Finding]:
        """Yield warnings about images that may not start on the AMI that all components have."""
        if "inference_ami_version" in self._options:
            return
        yield from ami_findings(self._images, self._instance_type, self._inference_ami_version())

    def _make_endpoint(self) -> sagemaker.CfnEndpoint:
        endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_name=self._options["endpoint_name"],
            endpoint_config_name=self._cfn_endpoint_config.attr_endpoint_config_name,
        )
        self._endpoint_name = self._get_resource_name_attribute(endpoint.attr_endpoint_name)
        self._endpoint_arn = self._get_resource_arn_attribute(
            endpoint.attr_endpoint_arn,
            service="sagemaker",
            resource="endpoint",
            resource_name=self._physical_name,
        )
        return endpoint

    def _metric_endpoint_name(self) -> str:
        # An alarm on the literal name does not refer to the endpoint, so it can be created first.
        name = self._options["endpoint_name"]
        return self._endpoint_name if name is None or is_token(name) else name


def _newest(images: list[TritonImage]) -> str | None:
    """The newest Triton release of the images; ``None`` if that of one is not known."""
    versions = [image.version for image in images]
    known = [version for version in versions if version is not None and not is_token(version)]
    return max(known) if len(known) == len(versions) else None
