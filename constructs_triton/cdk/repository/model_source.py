"""Where the models of a repository come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Protocol

from aws_cdk import aws_s3 as s3

from constructs_triton.cdk.repository.loaded_models import (
    LoadedModels,
    PackedModels,
    StoredModels,
    UncompressedModels,
    UploadedArchive,
)
from constructs_triton.cdk.validation.property_types import BUCKET, check_has, check_type
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.model_repository import ModelRepository
from constructs_triton.model_repository.scratch import scratch_directory
from constructs_triton.s3_prefix import check_folder_prefix

__all__ = ["ModelSource", "RepositoryBuilder"]


class RepositoryBuilder(Protocol):
    """What lays out a repository, such as ``ModelRepositoryBuilder``."""

    def write_to(self, directory: Path) -> object:
        """Write the repository into ``directory``, which is new."""
        ...


class ModelSource(ABC):
    """Where models come from; made by one of the ``from_*`` functions.

    Nothing is read before the source is handed to a ``TritonModelRepository``.
    """

    @classmethod
    def from_directory(cls, path: str | PathLike[str]) -> ModelSource:
        """A Triton model repository on this machine: a folder with one folder a model.

        ``path`` is taken relative to the current directory, as all of CDK takes paths.
        """
        return _Directory(Path(fspath(path)))

    @classmethod
    def from_builder(cls, builder: RepositoryBuilder) -> ModelSource:
        """The repository that a ``ModelRepositoryBuilder`` lays out, written at synth and removed after."""
        return _Builder(builder)

    @classmethod
    def from_archive(cls, path: str | PathLike[str]) -> ModelSource:
        """A ``.tar.gz`` on this machine that was packed elsewhere; it is uploaded as it is.

        It is read once from end to end: a member that would land outside its folder, a link, or anything
        but model directories at its root raises ``ArchiveError``. Its models are checked like any others.
        """
        return _Archive(Path(fspath(path)))

    @classmethod
    def from_bucket(cls, bucket: s3.IBucket, key: str) -> ModelSource:
        """A ``.tar.gz`` that lies in a bucket, of which nothing is known at synth: it is not checked.

        Give new content a new key, since a multi-model endpoint never loads the same key again.
        """
        check_has("bucket", bucket, *BUCKET)
        check_type("key", key, (str, '"archives/resnet-v3.tar.gz"'))
        if is_concrete(key) and (not key.endswith(".tar.gz") or key.startswith("/")):
            raise InvalidValueError(
                f'key: must be the key of an archive, ending in ".tar.gz", got "{key}"; pack the models, or '
                "use from_s3_prefix for uncompressed ones"
            )
        return _Stored(StoredModels(bucket, key))

    @classmethod
    def from_s3_prefix(cls, bucket: s3.IBucket, prefix: str) -> ModelSource:
        """Uncompressed models below a prefix, one folder a model, for an endpoint that serves one model.

        SageMaker copies them as they are (``ModelDataSource`` with ``CompressionType`` ``None``), which is
        faster for large weights; a multi-model endpoint takes archives alone. Nothing is checked.
        """
        check_has("bucket", bucket, *BUCKET)
        check_type("prefix", prefix, (str, '"models/llm/"'))
        check_folder_prefix("prefix", prefix, "models/llm/")
        return _Stored(UncompressedModels(bucket, prefix))

    @abstractmethod
    def load(self) -> LoadedModels:
        """The models as they are now; raises ``ConstructsTritonError`` where they cannot be read."""


@dataclass(frozen=True, slots=True)
class _Directory(ModelSource):
    path: Path

    def load(self) -> LoadedModels:
        return PackedModels(ModelRepository.from_directory(self.path))


@dataclass(frozen=True, slots=True)
class _Builder(ModelSource):
    builder: RepositoryBuilder

    def load(self) -> LoadedModels:
        directory = scratch_directory() / "repository"
        self.builder.write_to(directory)
        return PackedModels(ModelRepository.from_directory(directory))


@dataclass(frozen=True, slots=True)
class _Archive(ModelSource):
    path: Path

    def load(self) -> LoadedModels:
        return UploadedArchive.read(self.path)


@dataclass(frozen=True, slots=True)
class _Stored(ModelSource):
    models: LoadedModels

    def load(self) -> LoadedModels:
        return self.models
