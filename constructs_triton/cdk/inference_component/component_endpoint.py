"""``TritonComponentEndpoint``: an endpoint whose instances several models share."""

from __future__ import annotations

from typing import Unpack, cast

import jsii
from aws_cdk import Aspects
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references
from constructs import Construct

from constructs_triton.cdk.endpoint.endpoint_config import render_pools
from constructs_triton.cdk.endpoint.execution_role import (
    ExecutionRole,
    host_data,
    host_statements,
    observability_statements,
)
from constructs_triton.cdk.endpoint.network import (
    ContainerNetwork,
    check_network,
)
from constructs_triton.cdk.endpoint.resource_arn import endpoint_name_and_arn
from constructs_triton.cdk.endpoint.sagemaker_endpoint import CreatedEndpoint
from constructs_triton.cdk.inference_component.component_endpoint_base import ComponentEndpointBase
from constructs_triton.cdk.inference_component.component_host import CreatedHost
from constructs_triton.cdk.inference_component.endpoint_properties import (
    ComponentEndpointOptions,
    checked_endpoint_options,
    scale_in_findings,
    scale_in_policy,
)
from constructs_triton.cdk.inference_component.fleet_warnings import FleetWarnings, region_warnings
from constructs_triton.cdk.inference_component.imported import ImportedComponentEndpoint
from constructs_triton.cdk.inference_component.shared_role import SharedRole
from constructs_triton.cdk.metrics.metrics_config import render_metrics_config
from constructs_triton.cdk.options.host_options import HostOptions
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.inference_ami import FOR_THE_IMAGE
from constructs_triton.cdk.options.instance_pool import instance_types_of, pool_region_findings
from constructs_triton.cdk.options.removal import apply_removal_policy
from constructs_triton.cdk.permissions.encrypted_data import check_regions
from constructs_triton.cdk.permissions.role_trust import check_account
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.validation.properties import takes_properties
from constructs_triton.cdk.validation.unique_names import check_unique_name, register_name
from constructs_triton_core.facts.instance_types import InstanceType

_Config = sagemaker.CfnEndpointConfig
_PREFIX_AWARE = "PREFIX_AWARE"


@jsii.implements(sagemaker_references.IEndpointRef, iam.IGrantable, ec2.IConnectable)
@takes_properties(ComponentEndpointOptions)
class TritonComponentEndpoint(CreatedEndpoint[ImportedComponentEndpoint], ComponentEndpointBase):
    """An endpoint whose instances several models share, each a ``TritonInferenceComponent``.

    SageMaker adds instances when copies of components do not fit, and removes them when they are
    idle. With ``min_instance_count=0`` and components that scale to zero, nothing runs at night.
    After an error, nothing has been added to the stack.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a property has the wrong type, is out of range, or is not supported on
            endpoints with components.
    """

    def __init__(
        self, scope: Construct, id: str, **options: Unpack[ComponentEndpointOptions]
    ) -> None:
        checked = checked_endpoint_options(options)
        check_unique_name(scope, id, "endpoint_name", checked["endpoint_name"])
        check_account(scope, checked["role"])
        min_instance_count = checked["min_instance_count"]
        findings = [*check_network(scope, checked), *region_warnings(scope, min_instance_count)]
        findings += check_regions(scope, host_data(checked))
        findings += scale_in_findings(checked)
        findings += pool_region_findings(scope) if checked["instance_pools"] is not None else ()
        super().__init__(scope, id, physical_name=checked["endpoint_name"])
        self._options = checked
        self._network = ContainerNetwork.make(self, checked)
        self._connections = self._network.connections
        shared_role = self._make_role()
        self._role = shared_role.role
        self._host: CreatedHost = self._make_host(shared_role)
        self._cfn_endpoint_config = self._make_endpoint_config(shared_role)
        self._cfn_endpoint = self._make_endpoint(checked["endpoint_name"])
        needed = [self._cfn_endpoint_config, *shared_role.created, *self._network.created]
        apply_removal_policy(checked["removal_policy"], self._cfn_endpoint, needed=needed)
        annotate(self, [*findings, *shared_role.findings()])
        register_name(self, "endpoint_name", checked["endpoint_name"])
        Aspects.of(self).add(FleetWarnings(self, self._host, min_instance_count))

    # Endpoints that exist already.

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
        """Refer to an endpoint by its name, its ARN, or both.

        To add components, set ``instance_type``, ``role`` and, as they are on the endpoint,
        ``vpc``, ``vpc_subnets``, ``security_groups`` and ``enable_network_isolation``: the models
        of the components must have the same.

        Args:
            endpoint_name: Name of the endpoint. Without ``endpoint_arn``, it is an endpoint of
                this account and Region.
            endpoint_arn: ARN of the endpoint. It has the name in lower case, so metrics, alarms
                and scaling need ``endpoint_name`` too.
            variant_name: Name of its variant.
            instance_type: Type of the instances. Default: not known.
            **host: Role and network of the endpoint, as in the constructor.

        Raises:
            TypeError: there is no such property.
            InvalidValueError: neither name nor ARN is given, or a value is invalid.
        """
        given = endpoint_name_and_arn(scope, endpoint_name, endpoint_arn)
        return ImportedComponentEndpoint(
            scope,
            id,
            endpoint_name=given.name,
            endpoint_arn=given.arn,
            has_arn_of_token=given.has_arn_of_token,
            variant_name=variant_name,
            instance_type=instance_type,
            host=host,
        )

    # Creation.

    def _make_role(self) -> SharedRole:
        statements = [
            *observability_statements(self, has_components=True),
            *host_statements(self._options),
        ]
        return SharedRole(
            self, ExecutionRole.make(self, statements, self._options["role"]), statements
        )

    def _make_host(self, role: SharedRole) -> CreatedHost:
        """Return what the endpoint gives to its components."""
        options = self._options
        image = options["image"] or TritonImage.dlc()
        return CreatedHost(
            path=self.node.path,
            variant_name=cast(str, options["variant_name"]),
            identity=options["endpoint_name"],
            known_type=instance_types_of(options)[0],
            pools=instance_types_of(options),
            known_role=role,
            network_ids=self._network.ids,
            enable_network_isolation=options["enable_network_isolation"],
            image=image,
            max_instance_count=options["max_instance_count"],
            given_ami=options.get("inference_ami_version", FOR_THE_IMAGE),
            images=[] if options["image"] is None else [image],
            changed=self._set_production_variant,
            routes_by_prefix=options["routing_strategy"] == _PREFIX_AWARE,
        )

    def _make_endpoint_config(self, role: SharedRole) -> sagemaker.CfnEndpointConfig:
        """Create the endpoint configuration, which has one variant without a model."""
        key = self._options["encryption_key"]
        metrics = self._options["metrics_config"]
        vpc_config = None
        ids = self._host.network_ids
        if ids is not None:
            vpc_config = _Config.VpcConfigProperty(
                security_group_ids=ids.security_group_ids, subnets=ids.subnets
            )
        config = _Config(
            self,
            "EndpointConfig",
            execution_role_arn=self._role.role_arn,
            production_variants=[self._production_variant()],
            enable_network_isolation=self._host.enable_network_isolation,
            vpc_config=vpc_config,
            kms_key_id=None if key is None else key.key_arn,
            metrics_config=None if metrics is None else render_metrics_config(metrics),
        )
        if role.permissions is not None:
            config.node.add_dependency(role.permissions)
        return config

    def _set_production_variant(self) -> None:
        self._cfn_endpoint_config.production_variants = [self._production_variant()]

    def _production_variant(self) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
        """Return the only variant, whose instances the components share."""
        options = self._options
        volume_size, types = options["volume_size"], instance_types_of(options)
        # It has no model_name and no initial_variant_weight, which are for endpoints with a model.
        return _Config.ProductionVariantProperty(
            variant_name=self._host.variant_name,
            instance_type=types[0].name if len(types) == 1 else None,
            instance_pools=render_pools(types, {}) if len(types) > 1 else None,
            initial_instance_count=options["initial_instance_count"],
            inference_ami_version=self._host.inference_ami_version(),
            volume_size_in_gb=None if volume_size is None else volume_size.to_gibibytes(),
            managed_instance_scaling=_Config.ManagedInstanceScalingProperty(
                status="ENABLED",
                min_instance_count=options["min_instance_count"],
                max_instance_count=options["max_instance_count"],
                scale_in_policy=scale_in_policy(options),
            ),
            routing_config=self._routing(),
        )

    def _routing(self) -> sagemaker.CfnEndpointConfig.RoutingConfigProperty:
        """Return how SageMaker chooses the copy that gets a request."""
        options = self._options
        prefix = None
        if options["routing_strategy"] == _PREFIX_AWARE:
            prefix = _Config.PrefixAwareRoutingConfigProperty(
                prefix_length=options["prefix_length"],
                concurrency_threshold=options["concurrency_threshold"],
            )
        return _Config.RoutingConfigProperty(
            routing_strategy=options["routing_strategy"], prefix_aware_routing_config=prefix
        )
