"""Archives of multi-model endpoints in a folder that takes the place of S3."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_functions.model_sync.index import Index
from constructs_triton_functions.model_sync.properties import INDEX_FILE
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec


def with_archives_of(endpoint: EndpointSpec, bucket_folder: Path) -> EndpointSpec:
    """Return the endpoint with the archives that are below the prefix of each multi-model
    container.

    ``s3://bucket/prefix/`` is ``bucket_folder/bucket/prefix``, where archives may be added and
    removed later. An archive of the deployment replaces one of the same name. ``index.json`` below
    the prefix gets the names that the deployment would write.
    """
    variants = tuple(_variant(variant, bucket_folder) for variant in endpoint.variants)
    shadows = tuple(_variant(variant, bucket_folder) for variant in endpoint.shadow_variants)
    return replace(endpoint, variants=variants, shadow_variants=shadows)


def _variant(variant: VariantSpec, bucket_folder: Path) -> VariantSpec:
    if not variant.container.is_multi_model:
        return variant
    return replace(variant, container=_container(variant.container, bucket_folder))


def _container(container: ContainerSpec, bucket_folder: Path) -> ContainerSpec:
    """Return a multi-model container with the archives of its prefix in a folder of buckets."""
    prefix = bucket_folder / container.model_data_url.partition("://")[2]
    for owner, target_models in container.indexed.items():
        _write_index(prefix, owner, target_models)

    found = {str(path.relative_to(prefix)): path for path in sorted(prefix.rglob("*.tar.gz"))}
    return replace(container, archives={**found, **container.archives}, archive_folder=prefix)


def _write_index(prefix: Path, owner: str, target_models: Mapping[str, str]) -> None:
    """Write the names of a deployment, as its function in AWS does; names of others are kept."""
    path = prefix / INDEX_FILE
    try:
        before = Index.from_json(path.read_bytes()) if path.exists() else Index()
        after = before.with_deployment(owner, target_models, time.time())
        prefix.mkdir(parents=True, exist_ok=True)
        write_whole(path, after.to_json())
    except ValueError as error:
        raise LocalEndpointError(
            f"{path}: is not an index of models ({error}); delete this file"
        ) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LocalEndpointError(
            f"{path}: cannot be written ({reason}); choose a --bucket-folder that you may write"
        ) from error
