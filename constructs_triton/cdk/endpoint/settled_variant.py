"""The variants of an endpoint, settled and checked before anything is added to the tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from constructs import Construct

from constructs_triton.cdk.endpoint.container import SettledContainer, settle_container
from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.options.environment_layers import EnvironmentLayers
from constructs_triton.cdk.options.variant_options import TritonVariant, VariantOptions
from constructs_triton.cdk.validation.properties import declared_properties
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.inference_ami import FOR_THE_IMAGE
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.tokens import is_token

__all__ = ["SettledVariant", "settle_variants"]


@dataclass(frozen=True, slots=True)
class SettledVariant:
    """One variant: its name, its container, and its other properties.

    ``options`` are the endpoint's, with those that the variant sets itself. ``is_only`` is whether the
    endpoint has no list of variants; the variant's resources are then children of the endpoint itself.
    """

    variant_name: str
    container: SettledContainer
    options: VariantOptions
    position: int = 0
    is_only: bool = True
    is_shadow: bool = False

    @property
    def initial_instance_count(self) -> float:
        """The number of instances at the first deployment."""
        return cast(float, self.options["initial_instance_count"])

    @property
    def construct_name(self) -> str:
        """A name for construct ids: the variant's name, or its position if the name is a token."""
        return self.variant_name if not is_token(self.variant_name) else f"Variant{self.position}"


def settle_variants(scope: Construct, models: ServedModels, options: EndpointOptions) -> list[SettledVariant]:
    """Return the production variants, followed by the shadow variant if there is one.

    Raises:
        InvalidValueError: SageMaker would refuse a value.
        RepositoryError: Triton would not load the models of a variant.
    """
    shared = cast(
        VariantOptions,
        {name: value for name, value in options.items() if name in declared_properties(VariantOptions)},
    )
    instance_type = options["instance_type"]
    is_isolated = options["enable_network_isolation"]
    settle = partial(_settle, scope, models, instance_type, shared, is_isolated=is_isolated)
    if options["variants"] is None:
        container = _container(scope, models, instance_type, shared, is_isolated)
        found = [SettledVariant(cast(str, options["variant_name"]), container, shared)]
    else:
        found = [replace(settle(each), position=index) for index, each in enumerate(options["variants"])]
    if options["shadow_variant"] is not None:
        found.append(replace(settle(options["shadow_variant"]), position=len(found), is_shadow=True))
    return found


def _settle(
    scope: Construct,
    models: ServedModels,
    instance_type: InstanceType,
    shared: VariantOptions,
    variant: TritonVariant,
    *,
    is_isolated: bool | None,
) -> SettledVariant:
    options = _with_own_options(shared, variant.options)
    try:
        if variant.model_repository is not None or variant.model is not None:
            models = models.of_variant(variant.model_repository, variant.model)
        container = _container(scope, models, variant.instance_type or instance_type, options, is_isolated)
    except InvalidValueError as error:
        raise type(error)(f'variant "{variant.variant_name}" {error}') from None
    return SettledVariant(variant.variant_name, container, options, is_only=False)


def _container(
    scope: Construct,
    models: ServedModels,
    instance_type: InstanceType,
    options: VariantOptions,
    is_isolated: bool | None,
) -> SettledContainer:
    return settle_container(
        scope,
        models,
        instance_type,
        image=options["image"],
        environment=options["environment"],
        volume_size=options["volume_size"],
        inference_ami_version=options.get("inference_ami_version", FOR_THE_IMAGE),
        enable_network_isolation=is_isolated,
    )


def _with_own_options(shared: VariantOptions, own: VariantOptions) -> VariantOptions:
    merged = {**shared, **own}
    if shared["environment"] is not None and own.get("environment") is not None:
        # The variant's variables are added to those of the endpoint.
        merged["environment"] = EnvironmentLayers.of(shared["environment"], own["environment"])
    return cast(VariantOptions, merged)
