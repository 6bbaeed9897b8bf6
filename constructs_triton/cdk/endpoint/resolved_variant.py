"""What an endpoint's variants will be, judged before anything is added to the tree."""

from __future__ import annotations

from dataclasses import dataclass

from constructs import Construct

from constructs_triton.cdk.endpoint.container import ContainerSettings, check_models, container_settings
from constructs_triton.cdk.endpoint.properties import EndpointProps
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.options.variant_options import TritonVariant, VariantProps
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.findings import Finding

__all__ = ["ResolvedVariant", "resolve_variants"]


@dataclass(frozen=True, slots=True)
class ResolvedVariant:
    """One variant: its properties, what it serves, and how its container is started.

    ``is_only`` is whether the endpoint was given no list of variants; its parts then hang from the endpoint
    itself.
    """

    props: VariantProps
    models: ServedModels
    settings: ContainerSettings
    findings: tuple[Finding, ...]
    position: int = 0
    is_only: bool = True
    is_shadow: bool = False

    @property
    def construct_name(self) -> str:
        """A name for construct ids: a token cannot be one, but the place in the list is as stable."""
        name = self.props.variant_name
        return name if is_concrete(name) else f"Variant{self.position}"


def resolve_variants(scope: Construct, models: ServedModels, props: EndpointProps) -> list[ResolvedVariant]:
    """The production variants, then the shadow variant where there is one.

    Raises ``InvalidValueError`` and ``RepositoryError`` for what SageMaker or Triton would refuse.
    """
    listed: list[TritonVariant | None] = [None] if props.variants is None else list(props.variants)
    plans = [_plan(scope, models, props, variant, position) for position, variant in enumerate(listed)]
    if props.shadow_variant is not None:
        plans.append(_plan(scope, models, props, props.shadow_variant, len(plans), is_shadow=True))
    return plans


def _plan(
    scope: Construct,
    models: ServedModels,
    props: EndpointProps,
    variant: TritonVariant | None,
    position: int,
    *,
    is_shadow: bool = False,
) -> ResolvedVariant:
    variant_props = props.variant_props(variant)
    try:
        if variant is not None and (variant.model_repository is not None or variant.model is not None):
            models = models.of_variant(variant.model_repository, variant.model)
        models.check_scope(scope)
        settings = container_settings(scope, models, variant_props)
    except InvalidValueError as error:
        raise error if variant is None else type(error)(f'variant "{variant.variant_name}" {error}') from None
    findings = tuple(check_models(models, settings, variant_props))
    return ResolvedVariant(
        variant_props, models, settings, findings, position, is_only=variant is None, is_shadow=is_shadow
    )
