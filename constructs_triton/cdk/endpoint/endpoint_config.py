"""The ``AWS::SageMaker::Model`` of each variant, and the ``EndpointConfig`` over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from constructs_triton.cdk.endpoint.container import SettledContainer
from constructs_triton.cdk.endpoint.network import NetworkIds
from constructs_triton.cdk.endpoint.properties import RequestOptions
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.endpoint.settled_variant import SettledPool, SettledVariant
from constructs_triton.cdk.endpoint.sizing import Sizing
from constructs_triton.cdk.metrics.metrics_config import MetricsConfig, render_metrics_config
from constructs_triton.cdk.options.async_inference import render_async_inference
from constructs_triton.cdk.options.capacity_reservation import render_capacity_reservation
from constructs_triton.cdk.options.core_dump import render_core_dump
from constructs_triton.cdk.options.data_capture import render_data_capture
from constructs_triton.cdk.options.image import ContainerImage, bind_image
from constructs_triton.cdk.repository.loaded_models import ModelLocation
from constructs_triton.cdk.validation.limit_checks import seconds
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding


@dataclass(frozen=True, slots=True)
class ModelContainer:
    """A container of a model, of Triton or another one, with its image and its models in the stack.

    ``scope`` is the parent of its resources, ``sizing`` how long it may take to start, and
    ``definition`` the property of the model.
    """

    scope: Construct
    image: ContainerImage
    location: ModelLocation
    sizing: Sizing
    definition: sagemaker.CfnModel.ContainerDefinitionProperty
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundVariant:
    """A variant and its container in the stack.

    ``overrides`` are the containers of instance pools that load other models, by position.
    """

    settled: SettledVariant
    container: ModelContainer
    overrides: Mapping[int, ModelContainer] = field(default_factory=dict)


def bind_container(
    settled: SettledContainer, scope: Construct, location: ModelLocation, sizing: Sizing
) -> ModelContainer:
    """Add what the image of a container needs to the stack."""
    image = bind_image(settled.image, scope, settled.instance_type)
    definition = _definition(settled, image, location)
    return ModelContainer(scope, image, location, sizing, definition, settled.findings)


def bind_variants(scope: Construct, settled: Sequence[SettledVariant]) -> list[BoundVariant]:
    """Add what the containers of all variants need to the stack of the endpoint ``scope``."""
    locations = dict[ServedModels, ModelLocation]()
    return [_bind_variant(scope, variant, locations) for variant in settled]


def _bind_variant(
    endpoint: Construct, settled: SettledVariant, locations: dict[ServedModels, ModelLocation]
) -> BoundVariant:
    """Place the models of a variant in S3, and add the assets of its containers to the tree.

    ``locations`` has the places of models that other variants share, and gets those of this one.
    """
    scope = endpoint if settled.is_only else Construct(endpoint, f"{settled.construct_name}Variant")
    containers = [pool.container for pool in settled.pools] or [settled.container]

    # Variants and pools with the same models share one place in S3.
    for container in containers:
        if container.models not in locations:
            locations[container.models] = container.models.bind(endpoint)

    options = settled.options
    sizings = [
        Sizing.of(
            locations[container.models], container.instance_type, options, options["volume_size"]
        )
        for container in containers
    ]
    overrides = {
        position: _bind_pool(endpoint, pool, locations[pool.container.models])
        for position, pool in enumerate(settled.pools)
        if pool.has_own_models
    }
    location = locations[settled.container.models]
    bound = bind_container(settled.container, scope, location, Sizing.of_pools(sizings))
    return BoundVariant(settled, bound, overrides)


def _bind_pool(endpoint: Construct, pool: SettledPool, location: ModelLocation) -> ModelContainer:
    # Its findings and its sizing are those of the variant.
    settled = replace(pool.container, findings=())
    sizing = Sizing(None, None, None)
    return bind_container(settled, Construct(endpoint, pool.construct_name), location, sizing)


@dataclass(frozen=True, slots=True)
class ModelHost:
    """What all models of an endpoint get from it.

    Args:
        execution_role_arn: The role that reads image and models.
        permissions: Permissions of the role, which are created before the models.
        enable_network_isolation: Whether the containers have no network access.
        network: Subnets and security groups; ``None`` without a VPC.
    """

    execution_role_arn: str
    permissions: IDependable | None
    enable_network_isolation: bool | None
    network: NetworkIds | None


@dataclass(frozen=True, slots=True)
class EndpointModels:
    """The models of an endpoint: one for each variant, and those of pools by their position."""

    variants: list[sagemaker.CfnModel]
    pools: dict[int, sagemaker.CfnModel]

    @property
    def all(self) -> list[sagemaker.CfnModel]:
        """The models of the variants first."""
        return [*self.variants, *self.pools.values()]


def make_models(variants: Sequence[BoundVariant], host: ModelHost) -> EndpointModels:
    """Create the models of all variants, and those of pools that have their own."""
    models = [make_model(variant.container, host) for variant in variants]
    # AWS documents pools for the only variant.
    overrides = variants[0].overrides
    pool_models = {
        position: make_model(container, host) for position, container in overrides.items()
    }
    return EndpointModels(models, pool_models)


def make_model(container: ModelContainer, host: ModelHost) -> sagemaker.CfnModel:
    """Create the model after the role's permissions. It has no name, since changes replace it."""
    network = host.network
    model = sagemaker.CfnModel(
        container.scope,
        "Model",
        execution_role_arn=host.execution_role_arn,
        primary_container=container.definition,
        enable_network_isolation=host.enable_network_isolation,
        vpc_config=None
        if network is None
        else sagemaker.CfnModel.VpcConfigProperty(
            security_group_ids=network.security_group_ids, subnets=network.subnets
        ),
    )

    # SageMaker reads image and models with the role while it creates the model.
    permissions = host.permissions
    if permissions is not None:
        model.node.add_dependency(permissions)
    for dependency in container.location.dependencies:
        model.node.add_dependency(dependency)
    for encryption in container.location.encryptions:
        # Instances that run must be able to read a model when it is encrypted with another key.
        if permissions is not None and Stack.of(encryption) is Stack.of(model):
            encryption.node.add_dependency(permissions)
    return model


def _definition(
    settled: SettledContainer, image: ContainerImage, location: ModelLocation
) -> sagemaker.CfnModel.ContainerDefinitionProperty:
    """Return the container of a model: the image, the place of the models and the variables."""
    if location.model_package_name is not None:
        # The package has the image and the models, and may not allow variables.
        return sagemaker.CfnModel.ContainerDefinitionProperty(
            model_package_name=location.model_package_name,
            environment=settled.environment or None,
        )

    models = settled.models
    cache = models.model_cache_setting
    return sagemaker.CfnModel.ContainerDefinitionProperty(
        image=image.uri,
        mode="MultiModel" if models.serves_many else "SingleModel",
        model_data_url=location.url if location.is_compressed else None,
        model_data_source=None if location.is_compressed else uncompressed_source(location.url),
        environment=settled.environment,
        multi_model_config=None
        if cache is None
        else sagemaker.CfnModel.MultiModelConfigProperty(model_cache_setting=cache),
    )


def uncompressed_source(url: str) -> sagemaker.CfnModel.ModelDataSourceProperty:
    """Return the source of uncompressed models under a prefix."""
    source = sagemaker.CfnModel.S3DataSourceProperty(
        s3_uri=url, s3_data_type="S3Prefix", compression_type="None"
    )
    return sagemaker.CfnModel.ModelDataSourceProperty(s3_data_source=source)


def make_endpoint_config(
    scope: Construct,
    variants: Sequence[BoundVariant],
    models: EndpointModels,
    *,
    requests: RequestOptions,
    metrics: MetricsConfig | None,
    key: kms.IKey | None,
) -> sagemaker.CfnEndpointConfig:
    """Create the endpoint configuration. It has no name, since changes replace it."""
    capture = requests["data_capture"]
    asynchronous = requests["async_inference"]

    production = []
    shadows = []
    for variant, model in zip(variants, models.variants, strict=True):
        rendered = _production_variant(
            variant, model, models.pools, is_asynchronous=asynchronous is not None
        )
        if variant.settled.is_shadow:
            shadows.append(rendered)
        else:
            production.append(rendered)

    return sagemaker.CfnEndpointConfig(
        scope,
        "EndpointConfig",
        production_variants=production,
        shadow_production_variants=shadows or None,
        kms_key_id=None if key is None else key.key_arn,
        data_capture_config=None if capture is None else render_data_capture(capture),
        async_inference_config=None
        if asynchronous is None
        else render_async_inference(asynchronous),
        metrics_config=None if metrics is None else render_metrics_config(metrics),
    )


def _production_variant(
    variant: BoundVariant,
    model: sagemaker.CfnModel,
    pool_models: Mapping[int, sagemaker.CfnModel],
    *,
    is_asynchronous: bool,
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """Return a variant as the endpoint configuration declares it.

    ``pool_models`` are the models of the pools that have their own, by their positions.
    """
    settled = variant.settled
    container = settled.container
    sizing = variant.container.sizing
    options = settled.options
    core_dump = options["core_dump"]
    reservation = options["capacity_reservation"]
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=settled.variant_name,
        model_name=model.attr_model_name,
        instance_type=None if settled.pools else container.instance_type.name,
        instance_pools=render_pools(settled.instance_types, pool_models) if settled.pools else None,
        initial_instance_count=settled.initial_instance_count,
        initial_variant_weight=options["initial_variant_weight"],
        inference_ami_version=container.inference_ami_version,
        volume_size_in_gb=sizing.volume_size_gib,
        container_startup_health_check_timeout_in_seconds=sizing.container_startup_health_check_timeout,
        model_data_download_timeout_in_seconds=sizing.model_data_download_timeout,
        variant_instance_provision_timeout_in_seconds=seconds(
            options["variant_instance_provision_timeout"]
        ),
        routing_config=_routing(
            options["routing_strategy"],
            uses_queue=is_asynchronous,
            serves_many=container.models.serves_many,
        ),
        enable_ssm_access=options["enable_ssm_access"],
        core_dump_config=None if core_dump is None else render_core_dump(core_dump),
        capacity_reservation_config=None
        if reservation is None
        else render_capacity_reservation(reservation),
    )


def render_pools(
    types: Sequence[InstanceType], models: Mapping[int, sagemaker.CfnModel]
) -> list[sagemaker.CfnEndpointConfig.InstancePoolProperty]:
    """Return the pools of a variant; the first type has priority 1.

    ``models`` are by position, from 0.
    """
    return [
        sagemaker.CfnEndpointConfig.InstancePoolProperty(
            instance_type=instance_type.name,
            priority=position + 1,
            model_name_override=models[position].attr_model_name if position in models else None,
        )
        for position, instance_type in enumerate(types)
    ]


def _routing(
    strategy: str | None, *, uses_queue: bool, serves_many: bool
) -> sagemaker.CfnEndpointConfig.RoutingConfigProperty | None:
    if strategy is None:
        # A multi-model endpoint uses the instances that have loaded the model; an asynchronous one,
        # a queue.
        if serves_many or uses_queue:
            return None
        strategy = "LEAST_OUTSTANDING_REQUESTS"
    return sagemaker.CfnEndpointConfig.RoutingConfigProperty(routing_strategy=strategy)
