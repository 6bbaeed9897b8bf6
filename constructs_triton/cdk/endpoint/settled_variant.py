"""The variants of an endpoint, settled and checked before anything is added to the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from constructs import Construct

from constructs_triton.cdk.endpoint.container import SettledContainer, settle_container
from constructs_triton.cdk.endpoint.properties import FleetOptions
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.metrics.container_metrics import ContainerMetrics
from constructs_triton.cdk.options.environment_layers import EnvironmentLayers
from constructs_triton.cdk.options.inference_ami import FOR_THE_IMAGE
from constructs_triton.cdk.options.instance_pool import (
    InstancePool,
    ami_findings,
    has_own_models,
    merged_findings,
    pool_region_findings,
    raise_pool_errors,
)
from constructs_triton.cdk.options.variant_options import TritonVariant, VariantOptions
from constructs_triton_core.declared_values import part_of
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError, RepositoryError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding
from constructs_triton_core.tokens import is_token


@dataclass(frozen=True, slots=True)
class SettledPool:
    """One of several instance types, with its container;
    ``has_own_models`` if not the variant's models.
    """

    instance_type: InstanceType
    container: SettledContainer
    has_own_models: bool
    position: int

    @property
    def construct_name(self) -> str:
        """A name for construct ids: the type, or the position if the type is a token."""
        name = self.instance_type.name
        return f"{self.position if is_token(name) else name}Pool"


@dataclass(frozen=True, slots=True)
class SettledVariant:
    """One variant: its name, its container, and its other properties.

    ``options`` are the endpoint's, with those that the variant sets itself. ``is_only`` is whether
    the endpoint has no list of variants; the variant's resources are then children of the endpoint
    itself. ``pools`` are its instance types in order of priority, if it has several.
    """

    variant_name: str
    container: SettledContainer
    options: VariantOptions
    position: int = 0
    is_only: bool = True
    is_shadow: bool = False
    pools: tuple[SettledPool, ...] = ()

    @property
    def initial_instance_count(self) -> float:
        """The number of instances at the first deployment."""
        return cast(float, self.options["initial_instance_count"])

    @property
    def instance_types(self) -> tuple[InstanceType, ...]:
        """The instance types in order of priority."""
        if not self.pools:
            return (self.container.instance_type,)
        return tuple(pool.instance_type for pool in self.pools)

    @property
    def construct_name(self) -> str:
        """A name for construct ids: the variant's name, or its position if the name is a token."""
        if is_token(self.variant_name):
            return f"Variant{self.position}"
        return self.variant_name

    @property
    def container_metrics(self) -> ContainerMetrics | None:
        """The metrics of Triton that it publishes; ``None`` if it does not."""
        models = self.container.models
        if models.metrics_name is None:
            return None
        published = models.published_models
        steps = tuple(name for name in published if not models.contents.is_ensemble(name))
        return ContainerMetrics(
            models.metrics_name, self.variant_name, published, steps, models.custom_metrics
        )


def settle_variants(
    scope: Construct, models: ServedModels, fleet: FleetOptions, *, is_isolated: bool | None
) -> list[SettledVariant]:
    """Return the production variants, followed by the shadow variant if there is one."""
    if fleet["instance_pools"] is not None:
        return [_pooled_variant(scope, models, fleet["instance_pools"], fleet, is_isolated)]

    shared = part_of(fleet, VariantOptions)
    instance_type = fleet["instance_type"]
    settle = partial(_settle, scope, models, instance_type, shared, is_isolated=is_isolated)
    settled: list[SettledVariant] = []
    if fleet["variants"] is None:
        name = cast(str, fleet["variant_name"])
        # It is None only with variants that have their own.
        only_type = cast(InstanceType, instance_type)
        container = _container(scope, models, only_type, shared, is_isolated, variant_name=name)
        settled.append(SettledVariant(name, container, shared))
    else:
        for variant in fleet["variants"]:
            settled.append(replace(settle(variant), position=len(settled)))

    shadow = fleet["shadow_variant"]
    if shadow is not None:
        settled.append(replace(settle(shadow), position=len(settled), is_shadow=True))
    return settled


def _pooled_variant(
    scope: Construct,
    models: ServedModels,
    pools: Sequence[InstancePool],
    fleet: FleetOptions,
    is_isolated: bool | None,
) -> SettledVariant:
    """Settle the only variant of an endpoint that has several instance types.

    Raises:
        InvalidValueError: the models are not for one of the types, or the endpoint is multi-model.
    """
    if models.serves_many:
        # AWS documents pools for endpoints of one model, asynchronous ones and components.
        raise InvalidValueError(
            "instance_pools: not supported on multi-model endpoints; set instance_type, or serve "
            "the model with TritonEndpoint"
        )

    # The errors of all types are reported together.
    settled: dict[InstanceType, SettledPool] = {}
    errors: dict[InstanceType, ConstructsTritonError] = {}
    for pool in pools:
        try:
            settled[pool.instance_type] = _settle_pool(
                scope, models, pools, pool, fleet, is_isolated=is_isolated
            )
        except (InvalidValueError, RepositoryError) as error:
            errors[pool.instance_type] = error
    raise_pool_errors(errors)

    found: dict[InstanceType, Sequence[Finding]] = {}
    ami_versions: dict[InstanceType, str | None] = {}
    for instance_type, pool_of_type in settled.items():
        found[instance_type] = pool_of_type.container.findings
        ami_versions[instance_type] = pool_of_type.container.inference_ami_version
    findings = (
        *merged_findings(found),
        *ami_findings(fleet.get("inference_ami_version", FOR_THE_IMAGE), ami_versions),
        *pool_region_findings(scope),
    )

    # check_instances has made sure that one pool has the models of the endpoint.
    primary = next(pool for pool in settled.values() if not pool.has_own_models)
    container = replace(primary.container, findings=findings)
    name = cast(str, fleet["variant_name"])
    return SettledVariant(
        name, container, part_of(fleet, VariantOptions), pools=tuple(settled.values())
    )


def _settle_pool(
    scope: Construct,
    models: ServedModels,
    pools: Sequence[InstancePool],
    pool: InstancePool,
    fleet: FleetOptions,
    *,
    is_isolated: bool | None,
) -> SettledPool:
    """Settle the container of one instance type, with its own models or those of the endpoint."""
    if has_own_models(pool):
        models = models.of_variant(pool.model_repository, pool.model)
        sharing = [pool.instance_type]
    else:
        sharing = [other.instance_type for other in pools if not has_own_models(other)]
    name = cast(str, fleet["variant_name"])
    container = _container(
        scope,
        models,
        pool.instance_type,
        fleet,
        is_isolated,
        variant_name=name,
        shared_with=sharing,
    )
    return SettledPool(pool.instance_type, container, has_own_models(pool), pools.index(pool))


def _settle(
    scope: Construct,
    models: ServedModels,
    instance_type: InstanceType | None,
    shared: VariantOptions,
    variant: TritonVariant,
    *,
    is_isolated: bool | None,
) -> SettledVariant:
    """Settle one of several variants; what it does not set is that of the endpoint."""
    options = _with_own_options(shared, variant.options)
    try:
        if variant.model_repository is not None or variant.model is not None:
            models = models.of_variant(variant.model_repository, variant.model)
        container = _container(
            scope,
            models,
            cast(InstanceType, variant.instance_type or instance_type),
            options,
            is_isolated,
            variant_name=variant.variant_name,
        )
    except InvalidValueError as error:
        raise type(error)(f'variant "{variant.variant_name}" {error}') from None
    return SettledVariant(variant.variant_name, container, options, is_only=False)


def _container(
    scope: Construct,
    models: ServedModels,
    instance_type: InstanceType,
    options: VariantOptions,
    is_isolated: bool | None,
    *,
    variant_name: str,
    shared_with: Sequence[InstanceType] = (),
) -> SettledContainer:
    """Settle the container of a variant, with the publisher of Triton's metrics if there is one."""
    environment = options["environment"]
    if models.metrics_name is not None:
        from constructs_triton.cdk.monitoring.publisher_variables import with_publisher_variables

        environment = with_publisher_variables(
            environment,
            options["image"],
            models.metrics_name,
            variant_name,
            models.custom_metrics,
        )
    container = settle_container(
        scope,
        models,
        instance_type,
        image=options["image"],
        environment=environment,
        volume_size=options["volume_size"],
        inference_ami_version=options.get("inference_ami_version", FOR_THE_IMAGE),
        enable_network_isolation=is_isolated,
        shared_with=shared_with,
    )
    if models.metrics_name is None:
        return container
    from constructs_triton.cdk.monitoring.publisher_variables import (
        check_publisher_variables,
        price_of_metrics,
    )

    check_publisher_variables(container.environment)
    price = price_of_metrics(
        len(models.published_models), len(models.custom_metrics), container.environment
    )
    return replace(container, findings=(*container.findings, price))


def _with_own_options(shared: VariantOptions, own: VariantOptions) -> VariantOptions:
    merged = {**shared, **own}
    if shared["environment"] is not None and own.get("environment") is not None:
        # The variant's variables are added to those of the endpoint.
        merged["environment"] = EnvironmentLayers.of(shared["environment"], own["environment"])
    return cast(VariantOptions, merged)
