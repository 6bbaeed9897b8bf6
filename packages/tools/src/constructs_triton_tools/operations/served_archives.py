"""The model archives of a container, and the names behind their digests."""

from __future__ import annotations

from collections.abc import Mapping
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
    """

    url: str
    is_multi_model: bool
    models: Mapping[str, str]

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
    return replace(found, models=_indexed(reader, found.index_uri))


def _last_part(url: str) -> str:
    """The name of an archive, or the last folder of a prefix of files with its slash."""
    folder = url.removesuffix("/")
    return url[folder.rfind("/") + 1 :]


def _indexed(reader: NotingReader, uri: str) -> Mapping[str, str]:
    try:
        bucket, key = split_s3_uri(uri)
        answer = reader.read("s3", "get_object", Bucket=bucket, Key=key)
        return ModelIndex.from_json(answer["Body"].read(), uri).target_models if answer else {}
    except InvalidValueError as error:
        reader.not_read.append(str(error))
        return {}
