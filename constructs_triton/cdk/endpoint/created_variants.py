"""The variants of a new endpoint, with their scaling and their metrics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.settled_variant import SettledVariant
from constructs_triton.cdk.scaling.endpoint_variant import (
    EndpointVariant,
    VariantOwner,
    sequence_warning,
)
from constructs_triton.cdk.scaling.scaling_guard import ScalingGuard
from constructs_triton.cdk.validation.synthesis_warning import warn_at_synthesis


class CreatedVariants(NamedTuple):
    """The production variants of an endpoint, and its shadow variant or ``None``."""

    production: tuple[EndpointVariant, ...]
    shadow: EndpointVariant | None


def make_scaling_guard(
    scope: Construct,
    endpoint: sagemaker.CfnEndpoint,
    settled: Sequence[SettledVariant],
    *,
    adopts: bool,
) -> ScalingGuard:
    """Create the guard of an endpoint, which knows the instance types of all its variants."""
    return ScalingGuard(
        scope,
        "ScalingGuard",
        endpoint=endpoint,
        instance_types={variant.variant_name: variant.instance_types for variant in settled},
        replaces_policies=adopts,
    )


def make_variants(
    owner: VariantOwner,
    settled: Sequence[SettledVariant],
    models: Sequence[sagemaker.CfnModel],
) -> CreatedVariants:
    """Return the variants of an endpoint. ``models`` are theirs, in the same order.

    The owner refers to the endpoint's resource, so that scaling is created after the endpoint and
    deleted before it.
    """
    variants = [
        EndpointVariant(
            owner,
            variant_name=variant.variant_name,
            instance_types=variant.instance_types,
            initial_instance_count=variant.initial_instance_count,
            cfn_model=model,
            construct_name=variant.construct_name,
            container_metrics=variant.container_metrics,
        )
        for variant, model in zip(settled, models, strict=True)
    ]
    shadow = variants.pop() if settled[-1].is_shadow else None

    # A shadow variant answers no caller, so its instances may split a sequence.
    for created, variant in zip(variants, settled, strict=False):
        sequence_models = variant.container.models.sequence_models
        if sequence_models:
            warn_at_synthesis(owner.construct, partial(sequence_warning, created, sequence_models))
    return CreatedVariants(tuple(variants), shadow)
