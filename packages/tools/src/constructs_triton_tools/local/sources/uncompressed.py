"""The files of uncompressed models: from the assets of a cloud assembly, or from below a prefix of S3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_functions.model_sync.manifest import FileManifest, ListedFile
from triton_model_check.model_repository.uncompressed.names import name_problems

FindAsset = Callable[[str, str], Path]
"""Returns the file of an asset by its object key; the second string is what needs it, for messages."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file: ``size_bytes`` bytes from ``offset`` of ``path``. Without a size, all of it."""

    path: Path
    offset: int = 0
    size_bytes: int | None = None


def file_content(file: ListedFile, manifest: FileManifest, find_asset: FindAsset) -> FileContent:
    """Return where the content of a file of a manifest is: in an asset of its own, or in the zip."""
    if file.source_key is not None:
        return FileContent(find_asset(file.source_key, file.path))
    assert manifest.zip_key is not None
    return FileContent(find_asset(manifest.zip_key, file.path), file.offset, file.size_bytes)


def check_names(url: str, paths: Mapping[str, object]) -> None:
    """Check the paths of files below a prefix by SageMaker's rules."""
    problems = name_problems(paths)
    if problems:
        raise LocalEndpointError("\n".join(f"{url}: {problem}" for problem in problems))
