"""The files of uncompressed models: from the assets of a cloud assembly, or from below a prefix of S3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton.custom_resource_handlers.model_sync import FILES_RESOURCE_TYPE
from constructs_triton.custom_resource_handlers.model_sync.manifest import FileManifest, ListedFile
from constructs_triton.custom_resource_handlers.model_sync.properties import SyncProperties
from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.sources.intrinsics import Template
from constructs_triton.model_repository.uncompressed.names import name_problems

__all__ = ["FileContent", "FindAsset", "check_names", "read_files", "uncompressed_url"]

FindAsset = Callable[[str, str], Path]
"""Returns the file of an asset by its object key; the second string is what needs it, for messages."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file: ``size_bytes`` bytes from ``offset`` of ``path``. Without a size, all of it."""

    path: Path
    offset: int = 0
    size_bytes: int | None = None


def uncompressed_url(container: Mapping[str, Any]) -> str | None:
    """Return the prefix of a container's files; ``None`` if it has an archive."""
    source = container.get("ModelDataSource", {}).get("S3DataSource", {})
    is_prefix = source.get("CompressionType") == "None" and source.get("S3DataType") == "S3Prefix"
    return str(source["S3Uri"]) if is_prefix and "S3Uri" in source else None


def read_files(template: Template, model: str, url: str, find_asset: FindAsset) -> dict[str, FileContent]:
    """Return the files that the deployment would place below ``url``, by their paths.

    Raises:
        LocalEndpointError: no resource of the template places files there, or their names are not valid.
    """
    for logical_id in template.resources_of_type(FILES_RESOURCE_TYPE):
        sync = SyncProperties.from_cloudformation(template.properties(logical_id))
        if sync.model_data_url + sync.folder == url:
            manifest = FileManifest.from_json(find_asset(sync.manifest_key, logical_id).read_bytes())
            files = {file.path: _content(file, manifest, find_asset) for file in manifest.files}
            check_names(url, files)
            return files
    raise LocalEndpointError(
        f"{template.name}/{model}: the files of its model are not in this assembly, got {url!r}; "
        "deploy it and run it with --aws-endpoint-url, or select other endpoints with --endpoint"
    )


def _content(file: ListedFile, manifest: FileManifest, find_asset: FindAsset) -> FileContent:
    if file.source_key is not None:
        return FileContent(find_asset(file.source_key, file.path))
    assert manifest.zip_key is not None
    return FileContent(find_asset(manifest.zip_key, file.path), file.offset, file.size_bytes)


def check_names(url: str, paths: Mapping[str, object]) -> None:
    """Check the paths of files below a prefix by SageMaker's rules.

    Raises:
        LocalEndpointError: SageMaker could not place a file.
    """
    problems = name_problems(paths)
    if problems:
        raise LocalEndpointError("\n".join(f"{url}: {problem}" for problem in problems))
