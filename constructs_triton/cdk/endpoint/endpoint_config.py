"""The ``AWS::SageMaker::Model`` of each variant, and the ``EndpointConfig`` over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.endpoint.resolved_variant import ResolvedVariant
from constructs_triton.cdk.endpoint.sizing import Sizing
from constructs_triton.cdk.options.image import ContainerImage
from constructs_triton.cdk.repository.loaded_models import ModelLocation
from constructs_triton.cdk.validation.durations import seconds

__all__ = ["BoundVariant", "make_endpoint_config", "make_model"]


@dataclass(frozen=True, slots=True)
class BoundVariant:
    """A variant with its image and models. ``scope`` is the parent of its resources."""

    resolved: ResolvedVariant
    scope: Construct
    image: ContainerImage
    location: ModelLocation
    sizing: Sizing


def make_model(
    variant: BoundVariant,
    *,
    execution_role_arn: str,
    permissions: IDependable | None,
    enable_network_isolation: bool | None,
    vpc_config: sagemaker.CfnModel.VpcConfigProperty | None,
) -> sagemaker.CfnModel:
    """Create the model after the role's permissions. It has no name, since changes replace it."""
    model = sagemaker.CfnModel(
        variant.scope,
        "Model",
        execution_role_arn=execution_role_arn,
        primary_container=_container(variant),
        enable_network_isolation=enable_network_isolation,
        vpc_config=vpc_config,
    )
    if permissions is not None:
        model.node.add_dependency(permissions)
    for dependency in variant.location.dependencies:
        model.node.add_dependency(dependency)
    return model


def _container(variant: BoundVariant) -> sagemaker.CfnModel.ContainerDefinitionProperty:
    models = variant.resolved.models
    package, environment = variant.location.model_package_name, variant.resolved.settings.environment
    if package is not None:
        return sagemaker.CfnModel.ContainerDefinitionProperty(
            model_package_name=package, environment=environment or None
        )
    cache = models.model_cache_setting
    return sagemaker.CfnModel.ContainerDefinitionProperty(
        image=variant.image.uri,
        mode="MultiModel" if models.serves_many else "SingleModel",
        model_data_url=variant.location.url if variant.location.is_compressed else None,
        model_data_source=None if variant.location.is_compressed else _uncompressed(variant.location.url),
        environment=environment,
        multi_model_config=None
        if cache is None
        else sagemaker.CfnModel.MultiModelConfigProperty(model_cache_setting=cache),
    )


def _uncompressed(url: str) -> sagemaker.CfnModel.ModelDataSourceProperty:
    source = sagemaker.CfnModel.S3DataSourceProperty(
        s3_uri=url, s3_data_type="S3Prefix", compression_type="None"
    )
    return sagemaker.CfnModel.ModelDataSourceProperty(s3_data_source=source)


def make_endpoint_config(
    scope: Construct,
    options: EndpointOptions,
    variants: Sequence[BoundVariant],
    models: Sequence[sagemaker.CfnModel],
) -> sagemaker.CfnEndpointConfig:
    """Create the endpoint configuration. It has no name, since changes replace it."""
    rendered = [_production_variant(each, model) for each, model in zip(variants, models, strict=True)]
    shadows = [part for part, each in zip(rendered, variants, strict=True) if each.resolved.is_shadow]
    capture, asynchronous = options["data_capture"], options["async_inference"]
    metrics, key = options["metrics_config"], options["encryption_key"]
    return sagemaker.CfnEndpointConfig(
        scope,
        "EndpointConfig",
        production_variants=rendered[: len(rendered) - len(shadows)],
        shadow_production_variants=shadows or None,
        kms_key_id=None if key is None else key.key_arn,
        data_capture_config=None if capture is None else capture.render(),
        async_inference_config=None if asynchronous is None else asynchronous.render(),
        metrics_config=None if metrics is None else metrics.render(),
    )


def _production_variant(
    variant: BoundVariant, model: sagemaker.CfnModel
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    options, sizing = variant.resolved.options, variant.sizing
    core_dump, reservation = options["core_dump"], options["capacity_reservation"]
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=variant.resolved.variant_name,
        model_name=model.attr_model_name,
        instance_type=options["instance_type"].name,
        initial_instance_count=variant.resolved.initial_instance_count,
        initial_variant_weight=options["initial_variant_weight"],
        inference_ami_version=variant.resolved.settings.inference_ami_version,
        volume_size_in_gb=sizing.volume_size_gib,
        container_startup_health_check_timeout_in_seconds=sizing.container_startup_health_check_timeout,
        model_data_download_timeout_in_seconds=sizing.model_data_download_timeout,
        variant_instance_provision_timeout_in_seconds=seconds(options["variant_instance_provision_timeout"]),
        routing_config=_routing(variant.resolved),
        enable_ssm_access=options["enable_ssm_access"],
        core_dump_config=None if core_dump is None else core_dump.render(),
        capacity_reservation_config=None if reservation is None else reservation.render(),
    )


def _routing(
    resolved: ResolvedVariant,
) -> sagemaker.CfnEndpointConfig.RoutingConfigProperty | None:
    strategy = resolved.options["routing_strategy"]
    if strategy is None:
        # A multi-model endpoint uses the instances that have loaded the model; an asynchronous one, a queue.
        if resolved.models.serves_many or resolved.options["async_inference"] is not None:
            return None
        strategy = "LEAST_OUTSTANDING_REQUESTS"
    return sagemaker.CfnEndpointConfig.RoutingConfigProperty(routing_strategy=strategy)
