"""The model archives of a container, and the names behind their digests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.model_index import INDEX_FILE, ModelIndex, split_s3_uri
from constructs_triton_tools.aws.noting_reader import NotingReader

_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"


@dataclass(frozen=True, slots=True)
class ServedArchives:
    """The archive or the files of a single-model container, or the prefix of a multi-model
    container.

    Args:
        url: S3 URL of the archive, of the folder of files, or of the prefix.
        is_multi_model: Whether the container loads models by name.
        models: Archive, or folder of files, of each model by its name. Empty if the prefix has no
            index.
        removed: Models that a stack has deployed and that were removed from the index since.
    """

    url: str
    is_multi_model: bool
    models: Mapping[str, str]
    removed: Sequence[str] = ()

    @property
    def index_uri(self) -> str:
        """S3 URI of the index of a multi-model container."""
        return f"{self.url.rstrip('/')}/{INDEX_FILE}"


def served_archives(reader: NotingReader, container: Mapping[str, Any]) -> ServedArchives | None:
    """Return the archives of a container; ``None`` if it has no model data."""
    source = container.get("ModelDataSource", {}).get("S3DataSource", {}).get("S3Uri")
    url = container.get("ModelDataUrl") or source
    if url is None:
        return None
    if container.get("Mode") != "MultiModel":
        name = container.get("Environment", {}).get(_DEFAULT_MODEL, "the archive's only model")
        return ServedArchives(url, False, {name: _last_part(url)})
    found = ServedArchives(url, True, {})
    index = _index(reader, found.index_uri)
    return replace(found, models=index.target_models, removed=index.removed)


def _last_part(url: str) -> str:
    """The name of an archive, or the last folder of a prefix of files with its slash."""
    folder = url.removesuffix("/")
    return url[folder.rfind("/") + 1 :]


def _index(reader: NotingReader, uri: str) -> ModelIndex:
    """Return the index; an empty one if there is none, or if it cannot be read."""
    try:
        bucket, key = split_s3_uri(uri)
        answer = reader.read("s3", "get_object", Bucket=bucket, Key=key)
        return ModelIndex.from_json(answer["Body"].read(), uri) if answer else ModelIndex({})
    except InvalidValueError as error:
        reader.not_read.append(str(error))
        return ModelIndex({})
