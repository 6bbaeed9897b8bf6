"""The models of a container: unpacked into the app's folder,
or a reference to where they are in S3.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.model_index import split_s3_uri
from constructs_triton_tools.operations.adopting.findings import Adoption
from constructs_triton_tools.operations.adopting.python_text import Answer
from constructs_triton_tools.operations.adopting.reading import Downloads
from triton_model_check.facts.images import version_of_image
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository.archive_inspection import OUTLINE_BYTES, inspect_archive
from triton_model_check.model_repository.repository import ModelRepository

_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_ARCHIVE = ".tar.gz"
#: Errors with the same code; a thousand archives may have a thousand each.
_MOST_NOTED = 20
Kind = Literal["directory", "archive", "bucket", "files", "prefix", "package"]


@dataclass(frozen=True, slots=True)
class AdoptedModels:
    """The models of one container.

    Args:
        kind: Where the app takes them from.
        place: Path in the app's folder, key or prefix in the bucket, or ARN of the model package.
        bucket: Bucket of the archive or the prefix; empty for models in the app's folder.
        key_arn: KMS key of the objects in the bucket; ``None`` if there is none.
        model: Model that the endpoint serves; ``None`` if each request names its model, or for a
            package.
        is_ensemble: Whether this model is an ensemble.
        acknowledged: Codes of findings that have to be accepted so that the app can be synthesized.
    """

    kind: Kind
    place: str
    bucket: str = ""
    key_arn: str | None = None
    model: str | None = None
    is_ensemble: bool = False
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
    """Reads the models of containers."""

    downloads: Downloads
    directory: Path
    adoption: Adoption

    def read(
        self, name: str, container: Answer, instance_type: str | None, folder: str
    ) -> AdoptedModels | None:
        """Return the models of a container; ``None`` if they cannot be carried over,
        which is noted.
        """
        if container.get("ModelPackageName"):
            return AdoptedModels("package", str(container["ModelPackageName"]))
        source = container.get("ModelDataSource", {}).get("S3DataSource", {})
        url = container.get("ModelDataUrl") or source.get("S3Uri")
        if url is None:
            self.adoption.refuse(
                "no-model-data",
                f"model {name}: has no model data; "
                "add ModelDataUrl to a new model, and adopt that endpoint",
                is_final=True,
            )
            return None
        target = _target(container, instance_type)
        if container.get("Mode") == "MultiModel":
            return self._prefix(url, replace(target, platform="sagemaker-multi-model"))
        if source.get("CompressionType") == "None":
            return self._files(name, url, target.default_model)
        return self._archive(name, url, target, folder)

    def _prefix(self, url: str, target: Target) -> AdoptedModels:
        bucket, prefix = split_s3_uri(url)
        if not prefix.endswith("/"):
            prefix = f"{prefix}/"
            self.adoption.differ(
                "DescribeModel.PrimaryContainer.ModelDataUrl", f"ends with a slash: {prefix}"
            )
        listed = self.downloads.list(bucket, prefix)
        archives = [entry for entry in listed if entry["Key"].endswith(_ARCHIVE)]
        found: list[tuple[str, Finding]] = []
        head = None
        try:
            for archive in archives:
                url = f"s3://{bucket}/{archive['Key']}"
                errors = self._check_of_many(bucket, archive["Key"], archive["Size"], target)
                found += ((url, error) for error in errors)
            head = self.downloads.head(bucket, archives[0]["Key"]) if archives else None
        except ArchiveError as error:  # its KMS key is probably that of the others, too
            self.adoption.refuse("archive", str(error))
        self._note(found)
        self.adoption.carried.append(
            f"models: the {len(archives)} archives under {url} stay where they are"
        )
        return AdoptedModels("prefix", prefix, bucket, (head or {}).get("SSEKMSKeyId"))

    def _check_of_many(self, bucket: str, key: str, size: int, target: Target) -> list[Finding]:
        """Return the errors of an archive of a prefix. Nothing of it stays on disk."""
        path = self.downloads.fetch(bucket, key, size)
        if path is None:
            return []
        outline = path.with_name("outline")
        try:
            inspect_archive(path, outline_directory=outline, limits=self.downloads.limits)
            repository = ModelRepository.from_directory(outline, complete_bytes=OUTLINE_BYTES)
            return list(repository.check(target, is_archive=True).errors)
        except ArchiveError as error:
            if self.downloads.budget.is_spent:
                self.downloads.skip(bucket, key)
            else:
                self.adoption.refuse(
                    "archive", str(error).replace(str(path), f"s3://{bucket}/{key}")
                )
            return []
        finally:
            shutil.rmtree(path.parent)

    def _files(self, name: str, url: str, model: str | None) -> AdoptedModels | None:
        bucket, prefix = split_s3_uri(url)
        if model is None:
            listed = self.downloads.list(bucket, prefix)
            folders = {entry["Key"][len(prefix) :].partition("/")[0] for entry in listed}
            model = folders.pop() if len(folders) == 1 else None
        self.adoption.not_read.append(
            f"{url}: the files of the model stay there and were not checked; check a copy with "
            "`constructs-triton check`"
        )
        return self._served(
            name, AdoptedModels("files", prefix, bucket, model=model), "has several models"
        )

    def _served(self, name: str, models: AdoptedModels, reason: str) -> AdoptedModels | None:
        """Return models if it is known which one is served;
        the reason why it is not known is noted.
        """
        if models.model is not None:
            return models
        self.adoption.refuse(
            "default-model",
            f"model {name}: {reason}, and {_DEFAULT_MODEL} does not name the one to serve; set it "
            "on a new model, and adopt that endpoint",
            is_final=True,
        )
        return None

    def _archive(self, name: str, url: str, target: Target, folder: str) -> AdoptedModels | None:
        bucket, key = split_s3_uri(url)
        stored = AdoptedModels("bucket", key, bucket, model=target.default_model)
        path = None
        try:
            head = self.downloads.head(bucket, key)
            if head is not None:
                stored = replace(stored, key_arn=head.get("SSEKMSKeyId"))
                path = self.downloads.fetch(bucket, key, head["ContentLength"])
            if path is not None:
                self._unpack(path, folder)
                return self._unpacked(name, url, path, folder, target)
        except ArchiveError as error:
            message = str(error) if path is None else str(error).replace(str(path), url)
            self.adoption.refuse("archive", message, is_final=stored.model is None)
            return None if stored.model is None else stored
        return self._served(
            name, stored, "its archive was not read (see --max-download and --policy)"
        )

    def _unpack(self, path: Path, folder: str) -> None:
        """Unpack an archive into the app's folder; an archive that SageMaker would
        refuse leaves nothing.
        """
        unpacked = path.with_name("unpacked")
        inspect_archive(
            path,
            outline_directory=unpacked,
            outline_bytes=sys.maxsize,
            limits=self.downloads.limits,
        )
        (self.directory / folder).parent.mkdir(parents=True, exist_ok=True)
        unpacked.rename(self.directory / folder)

    def _unpacked(
        self, name: str, url: str, path: Path, folder: str, target: Target
    ) -> AdoptedModels | None:
        self.adoption.carried.append(f"models: {url}, unpacked into {folder}")
        repository = ModelRepository.from_directory(self.directory / folder)
        names = list(repository.models)
        served = names if len(names) == 1 else repository.top_level_models()
        model = target.default_model or (served[0] if len(served) == 1 else None)
        if model is None:
            return self._served(name, AdoptedModels("directory", folder), "has several models")
        report = repository.check(replace(target, default_model=model))
        errors = repository.errors_after_packing(report)
        self._note((folder, error) for error in errors)
        adopted = AdoptedModels(
            "directory",
            folder,
            model=model,
            is_ensemble=model in names and repository.models[model].is_ensemble,
            acknowledged=tuple(sorted({error.code for error in errors})),
        )
        with suppress(InvalidValueError):
            if repository.closure(model) == sorted(names):
                return adopted
        return self._whole(adopted, path)

    def _whole(self, adopted: AdoptedModels, path: Path) -> AdoptedModels:
        """Keep the archive as it is: it has models that the served model does not need."""
        kept = f"{adopted.place}{_ARCHIVE}"
        path.rename(self.directory / kept)
        self.adoption.carried.append(
            f"{kept} is the archive itself: it has models that {adopted.model} does not need, "
            f"which packing would leave out; {adopted.place} has its content to read"
        )
        return replace(adopted, kind="archive", place=kept)

    def _note(self, errors: Iterable[tuple[str, Finding]]) -> None:
        """Note errors with the archive or the folder that has each."""
        by_code: dict[str, list[str]] = {}
        for where, finding in errors:
            text = finding.one_line
            for folder in (self.directory, self.downloads.directory):
                text = text.replace(f"{folder}/", "")
            by_code.setdefault(finding.code, []).append(f"{where}: {text}")
        for code, messages in by_code.items():
            for message in messages[:_MOST_NOTED]:
                self.adoption.refuse(code, message)
            if len(messages) > _MOST_NOTED:
                more = (
                    f"{len(messages) - _MOST_NOTED} more errors of this kind; fix those above first"
                )
                self.adoption.refuse(code, more)


def _target(container: Answer, instance_type: str | None) -> Target:
    """Return what the models of a container are checked for."""
    environment = container.get("Environment", {})
    shm = environment.get("SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE", "")
    growth = environment.get("SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE", "")
    return replace(
        Target.named("sagemaker", instance_type=instance_type),
        image_version=version_of_image(container.get("Image")),
        default_model=environment.get(_DEFAULT_MODEL),
        shm_default_byte_size=int(shm) if shm.isdecimal() else None,
        shm_growth_byte_size=int(growth) if growth.isdecimal() else None,
    )
