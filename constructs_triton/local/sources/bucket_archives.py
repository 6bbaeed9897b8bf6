"""Archives of multi-model endpoints in a folder that takes the place of S3."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from constructs_triton.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec

__all__ = ["with_archives_of"]


def with_archives_of(endpoint: EndpointSpec, bucket_folder: Path) -> EndpointSpec:
    """Return the endpoint with the archives that are below the prefix of each multi-model container.

    ``s3://bucket/prefix/`` is ``bucket_folder/bucket/prefix``, where archives may be added and removed later.
    An archive of the deployment replaces one of the same name.
    """
    variants = tuple(_variant(each, bucket_folder) for each in endpoint.variants)
    shadows = tuple(_variant(each, bucket_folder) for each in endpoint.shadow_variants)
    return replace(endpoint, variants=variants, shadow_variants=shadows)


def _variant(variant: VariantSpec, bucket_folder: Path) -> VariantSpec:
    if not variant.container.is_multi_model:
        return variant
    return replace(variant, container=_container(variant.container, bucket_folder))


def _container(container: ContainerSpec, bucket_folder: Path) -> ContainerSpec:
    prefix = bucket_folder / container.model_data_url.partition("://")[2]
    found = {str(path.relative_to(prefix)): path for path in sorted(prefix.rglob("*.tar.gz"))}
    return replace(container, archives={**found, **container.archives}, archive_folder=prefix)
