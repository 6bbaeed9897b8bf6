"""What the three kinds of endpoint share: role, model, endpoint configuration, endpoint."""

from __future__ import annotations

import jsii
from aws_cdk import Duration, Resource
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references
from constructs import Construct

from constructs_triton.cdk._container import ContainerSettings, check_models, container_settings
from constructs_triton.cdk._endpoint_props import EndpointProps
from constructs_triton.cdk._execution_role import (
    ExecutionRole,
    key_statements,
    network_statements,
    observability_statements,
)
from constructs_triton.cdk._served_models import ModelData, ServedModels
from constructs_triton.cdk.image import ContainerImage
from constructs_triton.cdk.model_repository import annotate
from constructs_triton.cdk.scaling import TritonScalableInstanceCount
from constructs_triton.cdk.variant import EndpointVariant
from constructs_triton.errors import InvalidValueError

__all__ = ["EndpointCore"]


@jsii.implements(sagemaker.IEndpoint, iam.IGrantable, ec2.IConnectable)
class EndpointCore(Resource):
    """A SageMaker endpoint that runs Triton; see the three classes of ``constructs_triton.cdk.endpoint``.

    Everything that can be judged beforehand is judged before the construct joins the tree, so that a refused
    endpoint leaves nothing behind.
    """

    def __init__(self, scope: Construct, id: str, *, models: ServedModels, props: EndpointProps) -> None:
        settings = container_settings(scope, models, props)
        warnings = check_models(models, settings, props)
        super().__init__(scope, id, physical_name=props.endpoint_name)
        self._models = models
        self._props = props
        self._connections = self._make_connections()
        image = settings.image.bind(self, props.instance_type)
        data = models.bind(self)
        self._execution = self._make_role(image, data)
        self._cfn_model = self._make_model(image, data, settings)
        self._cfn_endpoint_config = self._make_endpoint_config(settings)
        self._cfn_endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_name=props.endpoint_name,
            endpoint_config_name=self._cfn_endpoint_config.attr_endpoint_config_name,
        )
        self._variants = (self._make_variant(),)
        annotate(self, warnings)

    # What was made.

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name, as it is known at deployment."""
        return self._get_resource_name_attribute(self._cfn_endpoint.attr_endpoint_name)

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN."""
        return self._get_resource_arn_attribute(
            self._cfn_endpoint.attr_endpoint_arn,
            service="sagemaker",
            resource="endpoint",
            resource_name=self._physical_name,
        )

    @property
    def endpoint_ref(self) -> sagemaker_references.EndpointReference:
        """How other constructs of the CDK refer to the endpoint."""
        return self._cfn_endpoint.endpoint_ref

    @property
    def cfn_endpoint(self) -> sagemaker.CfnEndpoint:
        """The ``AWS::SageMaker::Endpoint`` underneath, also ``node.default_child``."""
        return self._cfn_endpoint

    @property
    def cfn_endpoint_config(self) -> sagemaker.CfnEndpointConfig:
        """The ``AWS::SageMaker::EndpointConfig``; it has no name of its own, since any change replaces it."""
        return self._cfn_endpoint_config

    @property
    def cfn_model(self) -> sagemaker.CfnModel:
        """The ``AWS::SageMaker::Model``; it has no name of its own, since any change replaces it."""
        return self._cfn_model

    @property
    def variants(self) -> tuple[EndpointVariant, ...]:
        """The production variants."""
        return self._variants

    @property
    def role(self) -> iam.IRole:
        """The execution role of the containers."""
        return self._execution.role

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The principal that grants on other resources go to: the execution role."""
        return self._execution.role.grant_principal

    @property
    def connections(self) -> ec2.Connections:
        """The network connections; raises ``InvalidValueError`` for an endpoint without a VPC."""
        if self._connections is None:
            raise InvalidValueError(
                f"{self.node.path}: has no network connections to manage, got no vpc; "
                "give the endpoint the property vpc"
            )
        return self._connections

    # What can be done with it.

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call the endpoint (``sagemaker:InvokeEndpoint``)."""
        return iam.Grant.add_to_principal(
            grantee=grantee, actions=["sagemaker:InvokeEndpoint"], resource_arns=[self.endpoint_arn]
        )

    def add_to_role_policy(self, statement: iam.PolicyStatement) -> None:
        """Allow the containers something more, before the model is made."""
        result = self._execution.role.add_to_principal_policy(statement)
        if result.policy_dependable is not None:
            self._cfn_model.node.add_dependency(result.policy_dependable)

    def auto_scale_instance_count(
        self, *, min_capacity: float, max_capacity: float
    ) -> TritonScalableInstanceCount:
        """Let Application Auto Scaling choose the instance count of the endpoint's only variant."""
        return self._only_variant().auto_scale_instance_count(
            min_capacity=min_capacity, max_capacity=max_capacity
        )

    def metric(
        self, metric_name: str, *, statistic: str | None = None, period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Any metric SageMaker publishes for the endpoint's only variant, in its own namespace."""
        return self._only_variant().metric(metric_name, statistic=statistic, period=period)

    def metric_invocations(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Number of invocations, summed over ``period``, a minute by default."""
        return self.metric("Invocations", period=period)

    def metric_gpu_utilization(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """GPU utilisation in percent, from 0 to 100 **times** the number of GPUs of an instance."""
        return self.metric("GPUUtilization", period=period)

    def metric_model_latency(
        self, *, statistic: str = "p99", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Time the container took to answer, in **microseconds**."""
        return self.metric("ModelLatency", statistic=statistic, period=period)

    def _only_variant(self) -> EndpointVariant:
        if len(self._variants) != 1:
            raise InvalidValueError(
                f"{self.node.path}: several variants, got {len(self._variants)}; choose one of its variants"
            )
        return self._variants[0]

    # How it is made.

    def _make_connections(self) -> ec2.Connections | None:
        if self._props.vpc is None:
            return None
        groups = self._props.security_groups
        if groups is None:
            groups = [ec2.SecurityGroup(self, "SecurityGroup", vpc=self._props.vpc)]
        return ec2.Connections(security_groups=list(groups))

    def _make_role(self, image: ContainerImage, data: ModelData) -> ExecutionRole:
        statements = [
            *data.read_statements,
            *image.pull_statements(),
            *observability_statements(self),
        ]
        if self._props.vpc is not None:
            statements += network_statements()
        if self._props.encryption_key is not None:
            statements += key_statements(self._props.encryption_key.key_arn)
        if self._props.role is None:
            return ExecutionRole.make(self, statements)
        return ExecutionRole.extend(self._props.role, statements)

    def _make_model(
        self, image: ContainerImage, data: ModelData, settings: ContainerSettings
    ) -> sagemaker.CfnModel:
        container = sagemaker.CfnModel.ContainerDefinitionProperty(
            image=image.uri,
            mode="MultiModel" if self._models.mode == "multi-model" else "SingleModel",
            model_data_url=data.url,
            environment=settings.environment,
        )
        model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=self._execution.role.role_arn,
            primary_container=container,
            enable_network_isolation=self._props.enable_network_isolation,
            vpc_config=self._vpc_config(),
        )
        for dependency in (*self._execution.policies, *data.dependencies):
            model.node.add_dependency(dependency)
        return model

    def _vpc_config(self) -> sagemaker.CfnModel.VpcConfigProperty | None:
        if self._props.vpc is None or self._connections is None:
            return None
        groups = self._connections.security_groups
        return sagemaker.CfnModel.VpcConfigProperty(
            security_group_ids=[group.security_group_id for group in groups],
            subnets=_selected_subnet_ids(self._props.vpc, self._props.vpc_subnets),
        )

    def _make_endpoint_config(self, settings: ContainerSettings) -> sagemaker.CfnEndpointConfig:
        key = self._props.encryption_key
        return sagemaker.CfnEndpointConfig(
            self,
            "EndpointConfig",
            production_variants=[self._production_variant(settings)],
            kms_key_id=None if key is None else key.key_arn,
        )

    def _production_variant(
        self, settings: ContainerSettings
    ) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
        props = self._props
        return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
            variant_name=props.variant_name,
            model_name=self._cfn_model.attr_model_name,
            instance_type=props.instance_type.name,
            initial_instance_count=props.initial_instance_count,
            initial_variant_weight=props.initial_variant_weight,
            inference_ami_version=settings.inference_ami_version,
            volume_size_in_gb=None if props.volume_size is None else props.volume_size.to_gibibytes(),
            container_startup_health_check_timeout_in_seconds=_seconds(
                props.container_startup_health_check_timeout
            ),
            model_data_download_timeout_in_seconds=_seconds(props.model_data_download_timeout),
        )

    def _make_variant(self) -> EndpointVariant:
        return EndpointVariant(
            self,
            cfn_endpoint=self._cfn_endpoint,
            variant_name=self._props.variant_name,
            instance_type=self._props.instance_type,
            initial_instance_count=self._props.initial_instance_count,
        )


def _selected_subnet_ids(vpc: ec2.IVpc, selection: ec2.SubnetSelection | None) -> list[str]:
    if selection is None:
        return vpc.select_subnets().subnet_ids
    return vpc.select_subnets(
        availability_zones=selection.availability_zones,
        one_per_az=selection.one_per_az,
        subnet_filters=selection.subnet_filters,
        subnet_group_name=selection.subnet_group_name,
        subnets=selection.subnets,
        subnet_type=selection.subnet_type,
    ).subnet_ids


def _seconds(duration: Duration | None) -> float | None:
    return None if duration is None else duration.to_seconds()
