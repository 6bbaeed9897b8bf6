"""The models of a container: unpacked into the app's folder, or a reference to where they are in S3."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from constructs_triton.errors import ArchiveError, ConstructsTritonError, InvalidValueError
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.findings import Finding
from constructs_triton.model_config.target import Target
from constructs_triton.model_repository.archive_inspection import OUTLINE_BYTES, inspect_archive
from constructs_triton.model_repository.member_checks import normalize
from constructs_triton.model_repository.repository import ModelRepository
from constructs_triton.operations.adopting.downloads import Downloads
from constructs_triton.operations.adopting.findings import Adoption
from constructs_triton.untrusted.tar_reader import UnpackLimits, read_members
from constructs_triton_client.model_index import split_s3_uri

__all__ = ["AdoptedModels", "ModelReader", "target_of"]

_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_ARCHIVE = ".tar.gz"
Kind = Literal["directory", "archive", "bucket", "files", "prefix", "package"]


@dataclass(frozen=True, slots=True)
class AdoptedModels:
    """The models of one container.

    Args:
        kind: Where the app takes them from.
        place: Path in the app's folder, key or prefix in the bucket, or ARN of the model package.
        bucket: Bucket of the archive or the prefix; empty for models in the app's folder.
        key_arn: KMS key of the objects in the bucket; ``None`` if there is none.
        model: Model that the endpoint serves; ``None`` if each request names its model, or for a package.
        is_ensemble: Whether this model is an ensemble.
        size_bytes: Size of the archive; ``None`` if it is not known.
        acknowledged: Codes of findings that have to be accepted so that the app can be synthesized.
    """

    kind: Kind
    place: str
    bucket: str = ""
    key_arn: str | None = None
    model: str | None = None
    is_ensemble: bool = False
    size_bytes: int | None = None
    acknowledged: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether the models are in the app's folder."""
        return self.kind in ("directory", "archive")

    @property
    def is_multi_model(self) -> bool:
        """Whether each request names its model."""
        return self.kind == "prefix"


@dataclass(slots=True)
class ModelReader:
    """Reads the models of containers.

    Args:
        downloads: What is downloaded, within bounds.
        directory: Folder of the app.
        adoption: Where findings are noted.
    """

    downloads: Downloads
    directory: Path
    adoption: Adoption

    def read(
        self, name: str, container: Mapping[str, Any], target: Target, folder: str
    ) -> AdoptedModels | None:
        """Return the models of a container; ``None`` if they cannot be carried over, which is noted.

        Args:
            name: Name of the SageMaker model.
            container: Its container.
            target: Endpoint that the models are checked for.
            folder: Folder for them, relative to that of the app.
        """
        if container.get("ModelPackageName"):
            return AdoptedModels("package", str(container["ModelPackageName"]))
        source = container.get("ModelDataSource", {}).get("S3DataSource", {})
        url = container.get("ModelDataUrl") or source.get("S3Uri")
        if url is None:
            self.adoption.refuse("no-model-data", f"model {name}: has no model data", is_final=True)
            return None
        bucket, key = split_s3_uri(url)
        target = replace(target, default_model=container.get("Environment", {}).get(_DEFAULT_MODEL))
        if container.get("Mode") == "MultiModel":
            return self._prefix(url, bucket, key, replace(target, mode="multi-model"))
        if source.get("CompressionType") == "None":
            return self._files(name, bucket, key, target)
        return self._archive(name, url, target, folder)

    def _prefix(self, url: str, bucket: str, prefix: str, target: Target) -> AdoptedModels:
        if not prefix.endswith("/"):
            prefix += "/"
            self.adoption.differ(
                "DescribeModel.PrimaryContainer.ModelDataUrl", f"ends with a slash: {prefix}"
            )
        objects = self.downloads.list(bucket, prefix)
        archives = [each for each in objects if each["Key"].endswith(_ARCHIVE)]
        found: list[Finding] = []
        for each in archives:
            found += self._check_of_many(bucket, each, target)
        self._note(found, url)
        self.adoption.carried.append(f"models: the {len(archives)} archives under {url} stay where they are")
        key_arn = self.downloads.key_of(bucket, archives[0]["Key"]) if archives else None
        return AdoptedModels("prefix", prefix, bucket, key_arn)

    def _check_of_many(self, bucket: str, found: Mapping[str, Any], target: Target) -> list[Finding]:
        url = f"s3://{bucket}/{found['Key']}"
        path = self.downloads.fetch(bucket, found["Key"], found["Size"])
        if path is None:
            return []
        outline = path.with_name("outline")
        try:
            inspect_archive(path, outline_directory=outline, limits=self.downloads.limits)
            repository = ModelRepository.from_directory(outline, complete_bytes=OUTLINE_BYTES)
            return list(repository.check(target, is_archive=True).errors)
        except ArchiveError as error:
            self.adoption.refuse("archive", _about(error, path, url))
            return []

    def _files(self, name: str, bucket: str, prefix: str, target: Target) -> AdoptedModels | None:
        model = target.default_model
        if model is None:
            folders = {
                each["Key"][len(prefix) :].partition("/")[0] for each in self.downloads.list(bucket, prefix)
            }
            model = folders.pop() if len(folders) == 1 else None
        if model is None:
            self._refuse_without_name(name)
            return None
        self.adoption.not_read.append(
            f"s3://{bucket}/{prefix}: the files of the model stay there and were not checked; check a copy "
            "with `constructs-triton check`"
        )
        key_arn = None
        return AdoptedModels("files", prefix, bucket, key_arn, model)

    def _refuse_without_name(self, name: str) -> None:
        self.adoption.refuse(
            "default-model",
            f"model {name}: several models, and {_DEFAULT_MODEL} does not name the one to serve; set it on a "
            "new model, and adopt that endpoint",
            is_final=True,
        )

    def _archive(self, name: str, url: str, target: Target, folder: str) -> AdoptedModels | None:
        bucket, key = split_s3_uri(url)
        found = self.downloads.head(bucket, key)
        stored = AdoptedModels(
            "bucket", key, bucket, None if found is None else found.get("SSEKMSKeyId"), target.default_model
        )
        path = None if found is None else self.downloads.fetch(bucket, key, found["ContentLength"])
        if path is None:
            return self._stored(name, stored)
        try:
            inspected = inspect_archive(path, limits=self.downloads.limits)
            unpack(path, self.directory / folder, self.downloads.limits)
        except ArchiveError as error:
            self.adoption.refuse("archive", _about(error, path, url))
            return self._stored(name, stored)
        self.adoption.carried.append(f"models: {url}, unpacked into {folder}")
        return self._unpacked(name, path, folder, target, inspected.size_bytes)

    def _stored(self, name: str, models: AdoptedModels) -> AdoptedModels | None:
        if models.model is None:
            self._refuse_without_name(name)
            return None
        return models

    def _unpacked(
        self, name: str, path: Path, folder: str, target: Target, size_bytes: int
    ) -> AdoptedModels | None:
        repository = ModelRepository.from_directory(self.directory / folder)
        names = list(repository.models)
        model = target.default_model or (names[0] if len(names) == 1 else None)
        top_level = repository.top_level_models()
        model = model or (top_level[0] if len(top_level) == 1 else None)
        if model is None:
            self._refuse_without_name(name)
            return None
        report = repository.check(replace(target, default_model=model))
        errors = repository.errors_after_packing(report)
        self._note(errors, folder)
        is_ensemble = model in names and repository.models[model].is_ensemble
        adopted = AdoptedModels(
            "directory",
            folder,
            model=model,
            is_ensemble=is_ensemble,
            size_bytes=size_bytes,
            acknowledged=tuple(sorted({each.code for each in errors})),
        )
        with suppress(InvalidValueError):
            if repository.closure(model) == sorted(names):
                return adopted
        return self._whole(adopted, path, folder)

    def _whole(self, adopted: AdoptedModels, path: Path, folder: str) -> AdoptedModels:
        """Keep the archive as it is: it has models that the served model does not need."""
        kept = f"{folder}{_ARCHIVE}"
        path.rename(self.directory / kept)
        self.adoption.carried.append(
            f"{kept} is the archive itself: it has models that {adopted.model} does not need, which packing "
            f"would leave out; {folder} has its content to read"
        )
        return replace(adopted, kind="archive", place=kept)

    def _note(self, errors: Any, where: str) -> None:
        for each in errors:
            self.adoption.refuse(
                each.code, f"{where}: {_one_line(each, self.downloads.directory, self.directory)}"
            )


def unpack(archive: Path, directory: Path, limits: UnpackLimits) -> None:
    """Unpack an archive that ``inspect_archive`` has accepted into a new folder.

    Raises:
        ArchiveError: it cannot be read or written.
    """
    directory.mkdir(parents=True)
    for member in read_members(archive, limits):
        path = directory / normalize(member.name)
        try:
            if member.is_directory:
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.writelines(member.chunks())
        except OSError as error:
            raise ArchiveError(f"{archive}: cannot be unpacked ({error}); free disk space") from error


def target_of(container: Mapping[str, Any], instance_type: str | None, version: str | None) -> Target:
    """Return what the models of a container are checked for."""
    if instance_type is None:
        return Target(image_version=version)
    known = InstanceType.of(instance_type)
    shm = container.get("Environment", {}).get("SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE", "")
    return Target(
        gpu_count=known.gpus,
        gpu_memory_mib=known.gpu_memory_mib,
        gpu_model=known.gpu_model,
        compute_capability=known.compute_capability,
        memory_gib=known.memory_gib,
        storage_gb=known.local_storage_gb or None,
        image_version=version,
        shm_default_byte_size=int(shm) if shm.isdecimal() else None,
    )


def _about(error: ConstructsTritonError, path: Path, url: str) -> str:
    return str(error).replace(str(path), url)


def _one_line(finding: Finding, *folders: Path) -> str:
    text = finding.one_line
    for each in folders:
        text = text.replace(f"{each}/", "")
    return text
