"""Where the models of a repository come from."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol

from aws_cdk import aws_s3 as s3

from constructs_triton.cdk.repository.known_at_synth import (
    check_known_number,
    known_name,
    known_types,
    refuse_tokens,
)
from constructs_triton.cdk.repository.loaded_models import (
    ArchivePrefix,
    LoadedModels,
    PackagedModel,
    PackedModels,
    StoredModels,
    UncompressedModels,
    UploadedArchive,
)
from constructs_triton.cdk.repository.looked_up_models import LookedUpModels
from constructs_triton.cdk.validation.arguments import (
    check_flag,
    check_known_path,
    is_looked_up_path,
)
from constructs_triton.cdk.validation.created_objects import CreatedByFunctions
from constructs_triton.cdk.validation.property_types import BUCKET, check_has, check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.tokens import is_lookup_dummy, is_token
from triton_model_check.artifacts.environments.placement import as_packed
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.composition import CompositionOptions
from triton_model_check.model_repository.s3_keys import check_folder_prefix
from triton_model_check.model_repository.temporary_folders import scratch_directory

# botocore sagemaker service model: VersionedArnOrName.
_PACKAGE = re.compile(
    r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:[a-z\-]*\/)?"
    r"([a-zA-Z0-9]([a-zA-Z0-9-]){0,62})(?<!-)(\/[0-9]{1,9})?"
)
_PACKAGE_EXAMPLE = "arn:aws:sagemaker:us-east-1:123456789012:model-package/ranking/3"


class RepositoryBuilder(Protocol):
    """An object that writes a model repository, such as ``ModelRepositoryBuilder``."""

    def write_to(self, directory: Path) -> object:
        """Write the repository into ``directory``, which does not exist yet."""


class ModelSource(CreatedByFunctions):
    """Where models come from; created by one of the ``from_*`` methods.

    Nothing is read until the source is passed to a ``TritonModelRepository``.
    """

    _example = 'ModelSource.from_directory("models")'

    @classmethod
    def from_directory(cls, path: str | PathLike[str]) -> ModelSource:
        """Use a Triton model repository on your machine, a folder with one for each model.

        ``triton-models.toml`` in the folder declares the packages of Python models, for the app
        and the commands together. It may also have ``calls`` and ``also_served`` of the repository;
        one that the app sets too must have the same value.

        Args:
            path: The folder. A relative path is relative to the current directory, like every path
                in the CDK.
        """
        if is_looked_up_path(path):
            return _LookedUp(Path(path))
        return _Directory(_local_path(path))

    @classmethod
    def from_model_file(
        cls,
        path: str | PathLike[str],
        *,
        name: str | None = None,
        max_batch_size: int | None = None,
        with_warmup: bool = False,
        **fields: Any,
    ) -> ModelSource:
        """Use one model file on your machine, such as ``model.onnx``. Its configuration is derived
        from it.

        The archive is that of a folder with the configuration and the file, and it is checked like
        one. Messages name your file. To see the folder, run ``constructs-triton model new``.

        Args:
            path: Model of ONNX, TorchScript, TensorRT, OpenVINO, DALI or decision trees, or the
                folder of a SavedModel.
            name: Name of the model. Default: the name of the file without its ending.
            max_batch_size: Largest batch; 0 means that Triton does not batch. Default: that of
                Triton.
            with_warmup: Whether Triton runs the model once with zeros before it is ready.
            **fields: Other fields of ``ModelConfig``: ``dynamic_batching``, ``instance_group``, or
                ``input`` and ``output`` if the file does not say them.
        """
        name = known_name(name)
        check_known_number("max_batch_size", max_batch_size)
        check_flag("with_warmup", with_warmup)
        if is_looked_up_path(path):
            return _LookedUp(Path(path))
        return _ModelFile(_local_path(path), name, max_batch_size, with_warmup, fields)

    @classmethod
    def from_compiled(
        cls, path: str | PathLike[str], *, instance_type: InstanceType | Sequence[InstanceType]
    ) -> ModelSource:
        """Use the models that ``constructs-triton compile`` has written for the GPU of an instance
        type.

        The folder has a repository for each type of GPU. The checks compare the plan with the
        endpoint's instance type. Synthesis compiles nothing: a missing plan is an error with the
        command to run.

        With several instance types, the archive has the plan of each GPU, and ``config.pbtxt`` in
        it chooses by compute capability, with ``cc_model_filenames``.

        Args:
            path: The folder of ``compile --output``.
            instance_type: Instance type of the endpoint, or those of its pools or variants.

        Raises:
            InvalidValueError: the folder has no models for a GPU, the GPU is not known, or two GPUs
                have the same compute capability, such as L4 and L40S.
        """
        types = known_types(instance_type)
        if is_looked_up_path(path) or any(is_lookup_dummy(each.name) for each in types):
            return _LookedUp(Path(path))
        from constructs_triton.cdk.repository.several_gpus import compiled_repositories

        repositories = compiled_repositories(_local_path(path), types)
        if len(repositories) == 1:
            return _Directory(next(iter(repositories.values())))
        return _Compiled(repositories)

    @classmethod
    def from_builder(cls, builder: RepositoryBuilder) -> ModelSource:
        """Use the repository of a ``ModelRepositoryBuilder``; it is written at synthesis, then
        deleted.

        Args:
            builder: The builder with all models.
        """
        check_has("builder", builder, "write_to", "ModelRepositoryBuilder()")
        return _Builder(builder)

    @classmethod
    def from_archive(cls, path: str | PathLike[str]) -> ModelSource:
        """Use a ``.tar.gz`` archive on your machine, which is uploaded unchanged.

        Its models are checked like those of a folder. ``TritonModelRepository`` raises
        ``ArchiveError`` if a member would be extracted outside of its folder, is a link, or is not
        in a model folder.

        Args:
            path: Path of the archive.
        """
        if is_looked_up_path(path):
            return _LookedUp(Path(path))
        return _Archive(_local_path(path))

    @classmethod
    def from_bucket(cls, bucket: s3.IBucket, key: str) -> ModelSource:
        """Use a ``.tar.gz`` archive in a bucket. It is not read at synthesis, so its models are not
        checked.

        Upload new content under a new key, because a multi-model endpoint loads a key only once.

        Args:
            bucket: Bucket of the archive.
            key: Key of the archive, which ends in ``.tar.gz``.

        Raises:
            InvalidValueError: not a bucket, or a key that does not end in ``.tar.gz``.
        """
        check_has("bucket", bucket, *BUCKET)
        check_type("key", key, (str, '"archives/resnet-v3.tar.gz"'))
        if url := re.fullmatch("s3://[^/]+/(.+)", key):
            raise InvalidValueError(
                f'key: must not contain the bucket, got "{key}"; write "{url[1]}"'
            )
        if not is_token(key) and (not key.endswith(".tar.gz") or key.startswith("/")):
            raise InvalidValueError(
                f'key: must end with ".tar.gz" and not begin with "/", got "{key}"; pack the '
                "models with `constructs-triton pack`, "
                "or use from_s3_prefix for uncompressed models"
            )
        return _Stored(StoredModels(bucket, key))

    @classmethod
    def from_s3_prefix(cls, bucket: s3.IBucket, prefix: str) -> ModelSource:
        """Use uncompressed models under a prefix, one folder for each model, on a single-model
        endpoint.

        SageMaker copies the files (``ModelDataSource`` with ``CompressionType`` ``None``), which is
        faster for large weights. Multi-model endpoints support archives only. The models are not
        checked.

        Args:
            bucket: Bucket of the models.
            prefix: Beginning of their keys, which ends with ``/``.

        Raises:
            InvalidValueError: not a bucket, or a prefix that does not end with "/".
        """
        check_has("bucket", bucket, *BUCKET)
        check_folder_prefix("prefix", prefix, "models/llm/")
        return _Stored(UncompressedModels(bucket, prefix))

    @classmethod
    def from_archive_prefix(cls, bucket: s3.IBucket, prefix: str) -> ModelSource:
        """Use ``.tar.gz`` archives under a prefix, which other programs put there, on a multi-model
        endpoint.

        A training job may add models at any time;
        ``constructs_triton_tools.operations.ModelLibrary`` adds them with an index. Nothing is
        copied at deployment, and the models are not checked.

        Args:
            bucket: Bucket of the archives.
            prefix: Beginning of their keys, which ends with ``/``.

        Raises:
            InvalidValueError: not a bucket, or a prefix that does not end with "/".
        """
        check_has("bucket", bucket, *BUCKET)
        check_folder_prefix("prefix", prefix)
        return _Stored(ArchivePrefix(bucket, prefix))

    @classmethod
    def from_model_package(cls, model_package_arn: str) -> ModelSource:
        """Use a version of a SageMaker model package, which contains the image and the models.

        For ``TritonEndpoint`` only. It excludes ``image``, checks of the models, derived timeouts,
        multi-model endpoints and local runs. The container gets only the variables of
        ``environment``. The execution role gets no permission to read the package's image and data;
        add them with ``endpoint.add_to_role_policy``, or set ``role``. Packages of AWS Marketplace
        need ``enable_network_isolation=True``.

        Args:
            model_package_arn: Name or ARN of the version.

        Raises:
            InvalidValueError: not the name or the ARN of a model package.
        """
        check_type("model_package_arn", model_package_arn, (str, f'"{_PACKAGE_EXAMPLE}"'))
        if not is_token(model_package_arn) and _PACKAGE.fullmatch(model_package_arn) is None:
            raise InvalidValueError(
                "model_package_arn: must be the ARN of a model package version, got "
                f'"{model_package_arn}"; write it as "{_PACKAGE_EXAMPLE}"'
            )
        return _Stored(PackagedModel(model_package_arn))

    @abstractmethod
    def _load(self, composition: CompositionOptions) -> LoadedModels:
        """Read the models; called by :func:`load_source`."""


def load_source(source: ModelSource, composition: CompositionOptions) -> LoadedModels:
    """Read the models of a source. ``composition`` is what the user declares about them.

    Raises:
        ConstructsTritonError: they cannot be read, or there are no models that ``composition``
            contains.
    """
    return source._load(composition)


def stored_models(source: ModelSource) -> StoredModels | None:
    """Return the archive or the files in S3 of a source; ``None`` for another source."""
    if not isinstance(source, _Stored):
        return None
    models = source.models
    # The names of the archives under a prefix are not known.
    if not isinstance(models, StoredModels) or isinstance(models, ArchivePrefix):
        return None
    return models


def _local_path(path: str | PathLike[str]) -> Path:
    """Return a path, which is not the URL of an object in S3."""
    check_known_path("path", path, "models")
    if fspath(path).startswith("s3://"):
        raise InvalidValueError(
            f'path: must not be in S3, got "{path}"; '
            "use from_bucket for a .tar.gz, or from_s3_prefix"
        )
    return Path(fspath(path))


@dataclass(frozen=True, slots=True)
class _LookedUp(ModelSource):
    path: Path

    def _load(self, composition: CompositionOptions) -> LoadedModels:  # noqa: ARG002 - of other models
        return LookedUpModels(self.path)


@dataclass(frozen=True, slots=True)
class _Directory(ModelSource):
    path: Path

    def _load(self, composition: CompositionOptions) -> LoadedModels:
        return _packed(self.path, composition)


@dataclass(frozen=True, slots=True)
class _Compiled(ModelSource):
    repositories: Mapping[InstanceType, Path]

    def _load(self, composition: CompositionOptions) -> LoadedModels:
        from constructs_triton.cdk.repository.several_gpus import combine_gpus

        combined = combine_gpus(self.repositories, scratch_directory())
        combined.compose(composition)
        return PackedModels(combined, named=next(iter(self.repositories.values())).parent)


@dataclass(frozen=True, slots=True)
class _ModelFile(ModelSource):
    path: Path
    name: str | None
    max_batch_size: int | None
    with_warmup: bool
    fields: Mapping[str, Any]

    def _load(self, composition: CompositionOptions) -> LoadedModels:
        from constructs_triton.cdk.repository.model_of_file import load_model_file

        models = load_model_file(
            self.path,
            composition,
            name=self.name,
            max_batch_size=self.max_batch_size,
            with_warmup=self.with_warmup,
            fields=self.fields,
        )
        refuse_tokens("fields", models.repository)
        return models


@dataclass(frozen=True, slots=True)
class _Builder(ModelSource):
    builder: RepositoryBuilder

    def _load(self, composition: CompositionOptions) -> LoadedModels:
        directory = scratch_directory() / "repository"
        self.builder.write_to(directory)
        refuse_tokens("builder", ModelRepository.from_directory(directory))
        return _packed(directory, composition)


@dataclass(frozen=True, slots=True)
class _Archive(ModelSource):
    path: Path

    def _load(self, composition: CompositionOptions) -> LoadedModels:
        if composition.also_served:
            raise InvalidValueError(
                "also_served: an archive is uploaded unchanged, "
                f"got {self.path}; use from_directory"
            )
        return UploadedArchive.read(self.path, composition)


@dataclass(frozen=True, slots=True)
class _Stored(ModelSource):
    models: LoadedModels

    def _load(self, composition: CompositionOptions) -> LoadedModels:
        if not composition.is_empty:
            raise InvalidValueError(
                "calls, also_served: the models are not read at synth, got "
                f"{self.models.description}; remove these properties, and set additional_models of "
                "TritonEnvironment for models that others call"
            )
        return self.models


def _packed(path: Path, composition: CompositionOptions) -> PackedModels:
    """Read a folder of models, with the Python environments that it declares."""
    repository = ModelRepository.from_directory(path)
    repository.compose(composition)
    placed = as_packed(repository)
    return PackedModels(placed, named=None if placed is repository else path)
