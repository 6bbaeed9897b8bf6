"""The variants of an endpoint, checked before anything is added to the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from constructs import Construct

from constructs_triton.cdk.endpoint.container import ContainerSettings, check_models, container_settings
from constructs_triton.cdk.endpoint.properties import EndpointOptions, variant_options
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.options.variant_options import TritonVariant
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.findings import Finding
from constructs_triton.tokens import is_token

__all__ = ["ResolvedVariant", "resolve_variants"]


@dataclass(frozen=True, slots=True)
class ResolvedVariant:
    """One variant: its properties, its models, and how its container is started.

    ``options`` are the endpoint's properties with those that the variant sets itself. ``is_only`` is whether
    the endpoint has no list of variants; the variant's resources are then children of the endpoint itself.
    """

    options: EndpointOptions
    models: ServedModels
    settings: ContainerSettings
    findings: tuple[Finding, ...]
    position: int = 0
    is_only: bool = True
    is_shadow: bool = False

    @property
    def variant_name(self) -> str:
        """The variant's name."""
        return cast(str, self.options["variant_name"])

    @property
    def instance_type(self) -> InstanceType:
        """The instance type."""
        return self.options["instance_type"]

    @property
    def initial_instance_count(self) -> float:
        """The number of instances at the first deployment."""
        return cast(float, self.options["initial_instance_count"])

    @property
    def construct_name(self) -> str:
        """A name for construct ids: the variant's name, or its position if the name is a token."""
        return self.variant_name if not is_token(self.variant_name) else f"Variant{self.position}"


def resolve_variants(
    scope: Construct, models: ServedModels, options: EndpointOptions
) -> list[ResolvedVariant]:
    """Return the production variants, followed by the shadow variant if there is one.

    Raises:
        InvalidValueError: SageMaker would refuse a value.
        RepositoryError: Triton would not load the models of a variant.
    """
    listed: list[TritonVariant | None] = [None] if options["variants"] is None else list(options["variants"])
    resolved = [_resolve(scope, models, options, variant, index) for index, variant in enumerate(listed)]
    if options["shadow_variant"] is not None:
        shadow = options["shadow_variant"]
        resolved.append(_resolve(scope, models, options, shadow, len(resolved), is_shadow=True))
    return resolved


def _resolve(
    scope: Construct,
    models: ServedModels,
    endpoint: EndpointOptions,
    variant: TritonVariant | None,
    position: int,
    *,
    is_shadow: bool = False,
) -> ResolvedVariant:
    options = endpoint if variant is None else variant_options(endpoint, variant)
    try:
        if variant is not None and (variant.model_repository is not None or variant.model is not None):
            models = models.of_variant(variant.model_repository, variant.model)
        models.check_scope(scope)
        settings = container_settings(scope, models, options)
    except InvalidValueError as error:
        raise error if variant is None else type(error)(f'variant "{variant.variant_name}" {error}') from None
    findings = tuple(check_models(models, settings, options))
    return ResolvedVariant(
        options, models, settings, findings, position, is_only=variant is None, is_shadow=is_shadow
    )
