"""The models of a source: on your machine, where they are checked and packed, or already in S3."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import CustomResource
from aws_cdk import aws_s3 as s3
from blake3 import blake3
from constructs import Construct, IDependable

from constructs_triton.cdk.permissions.places import Place
from constructs_triton.cdk.permissions.s3_conditions import decrypt_statements, in_own_account
from constructs_triton.cdk.permissions.statements import Statement, allow, allow_to_list
from constructs_triton.cdk.repository.archive_assets import StackAssets
from constructs_triton.cdk.repository.downloads import downloads_weights, environment_bytes
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.marketplace import is_of_marketplace
from constructs_triton_core.tokens import is_token
from constructs_triton_core.untrusted.drafts import partial_folder
from triton_model_check.checks.report import Report
from triton_model_check.memory.instances import HOST
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.cached_repository import CachedRepository
from triton_model_check.model_repository.composition import CompositionOptions

if TYPE_CHECKING:
    from triton_model_check.model_repository.archive_outline import ArchiveOutline
    from triton_model_check.model_repository.packing import PackedArchive


# Parts of an ARN between colons.
_REGION, _ACCOUNT = 3, 4


@dataclass(frozen=True, slots=True)
class ModelLocation:
    """Where an endpoint loads its models from, and what it needs to read them.

    ``url`` is the address of an archive, or of a prefix. ``is_compressed`` is ``False`` for a
    prefix with uncompressed models. The sizes are those of an archive or of files that are loaded
    at start; they are ``None`` if they are not known at synth; with ``downloads_weights`` a model
    downloads more when it starts. ``dependencies`` are created before the endpoint's models.
    ``encryptions`` may encrypt models with another key, after their readers may decrypt with it.
    With a ``model_package_name``, models and image are those of the package, and ``url`` is empty.
    """

    url: str
    read_statements: tuple[Statement, ...]
    is_compressed: bool = True
    size_bytes: int | None = None
    unpacked_size_bytes: int | None = None
    downloads_weights: bool = False
    dependencies: tuple[IDependable, ...] = ()
    encryptions: tuple[CustomResource, ...] = ()
    model_package_name: str | None = None


class LoadedModels(ABC):
    """The models of one source."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The name of the source in messages."""

    @abstractmethod
    def check(self, target: Target | None) -> Report:
        """Return the findings of the checks; none if the models cannot be read."""

    @abstractmethod
    def holds(self, model_name: str) -> bool:
        """Return whether there is a model of that name, as far as it is known."""

    @abstractmethod
    def only_model(self, name: str) -> str:
        """Return the folder of the model to be served as ``name``.

        Raises:
            InvalidValueError: the source contains several models, or none.
        """

    def host_bytes(self, target: Target) -> int:  # noqa: ARG002 - not known of models in S3
        """Return what the models take of the main memory on a target, at least."""
        return 0

    def called_models(self, model_name: str) -> tuple[str, ...]:  # noqa: ARG002 - not known of models in S3
        """Return the models that the server must load besides a model,
        because Python models call them.
        """
        return ()

    @abstractmethod
    def content_digest(self, model_name: str) -> str:
        """Return a digest of the content of a model's archive, in hexadecimal."""

    def places(self, property: str) -> Iterator[Place]:  # noqa: ARG002 - files on this machine
        """Yield where the models are, if they are not on this machine."""
        yield from ()

    @abstractmethod
    def locate(self, model_name: str, scope: Construct) -> ModelLocation:
        """Return the place from which the endpoint ``scope`` loads a model."""


@dataclass(frozen=True)
class LocalModels(LoadedModels):
    """Models on your machine.

    ``named`` is their folder in messages, if they are read from a copy of it.
    """

    cached: CachedRepository
    named: Path | None = None

    @property
    def description(self) -> str:
        return str(self.named or self.cached.repository.path)

    @property
    def repository(self) -> ModelRepository:
        return self.cached.repository

    def check(self, target: Target | None) -> Report:
        return self.cached.check(target)

    def host_bytes(self, target: Target) -> int:
        return self.cached.least_bytes(HOST, target)

    def called_models(self, model_name: str) -> tuple[str, ...]:
        return self.cached.called_by(model_name)

    def holds(self, model_name: str) -> bool:
        return model_name in self.repository.models

    def only_model(self, name: str) -> str:
        names = list(self.cached.top_level)
        if len(names) != 1:
            raise InvalidValueError(
                f'model "{name}": must be one model, with the models that it needs, '
                f"got {', '.join(names) or 'none'} in {self.description}; add each model with "
                "add_model and its own source"
            )
        return names[0]

    @abstractmethod
    def contents_of(self, model_name: str) -> tuple[str, ...]:
        """Return the models in the archive of a model, itself first."""

    @abstractmethod
    def archive(self, model_name: str, directory: Path) -> PackedArchive:
        """Write the archive of a model into ``directory``, named after its digest."""

    def locate(self, model_name: str, scope: Construct) -> ModelLocation:
        assets, models = StackAssets(scope), self.contents_of(model_name)
        archive = self.archive(model_name, assets.directory)
        asset = assets.add_archive(archive, models)
        statement = allow(
            "LoadModel",
            ["s3:GetObject"],
            [asset.object_arn],
            in_own_account(scope, asset.bucket_name),
        )
        return ModelLocation(
            asset.model_data_url,
            (statement,),
            size_bytes=archive.size_bytes,
            unpacked_size_bytes=archive.unpacked_size_bytes
            + environment_bytes(self.repository, models),
            downloads_weights=downloads_weights(self.repository, models),
        )


class PackedModels(LocalModels):
    """A folder of models; each archive is packed once, when it is needed."""

    def __init__(self, repository: ModelRepository, named: Path | None = None) -> None:
        super().__init__(CachedRepository(repository), named)

    def contents_of(self, model_name: str) -> tuple[str, ...]:
        return self.cached.contents_of(model_name)

    def content_digest(self, model_name: str) -> str:
        return self.cached.identities[model_name].digest

    def archive(self, model_name: str, directory: Path) -> PackedArchive:
        # Only if it is cached, so large models that are not served are not hashed.
        from triton_model_check.model_repository import pack
        from triton_model_check.model_repository.packing import find_packed

        identity = self.cached.known_identities.get(model_name)
        found = None if identity is None else find_packed(identity, directory)
        return found or pack(
            self.repository, self.contents_of(model_name), directory, shares_files=True
        )


class UploadedArchive(LocalModels):
    """A ``.tar.gz`` that was packed elsewhere."""

    def __init__(self, outline: ArchiveOutline) -> None:
        super().__init__(CachedRepository(outline.repository))
        self.inspected = outline.archive

    @classmethod
    def read(cls, path: Path, composition: CompositionOptions) -> UploadedArchive:
        """Read the archive at ``path``.

        Raises:
            ArchiveError: not an archive of models, or an unsafe one.
            InvalidValueError: ``composition`` contains a model that is not in the archive.
        """
        from triton_model_check.model_repository.archive_outline import outline_archive

        outline = outline_archive(path)
        outline.repository.compose(composition)
        return cls(outline)

    @property
    def description(self) -> str:
        return str(self.inspected.path)

    def contents_of(self, model_name: str) -> tuple[str, ...]:
        return (model_name, *(name for name in self.inspected.models if name != model_name))

    def content_digest(self, model_name: str) -> str:  # noqa: ARG002 - always the archive itself
        return self.inspected.digest

    def archive(self, model_name: str, directory: Path) -> PackedArchive:  # noqa: ARG002 - likewise
        from triton_model_check.model_repository.packing import ARCHIVE_SUFFIX, PackedArchive

        inspected = self.inspected
        place = directory / f"{inspected.digest}{ARCHIVE_SUFFIX}"
        if not (place.exists() and place.stat().st_size == inspected.size_bytes):
            _link_or_copy(inspected.path, place)
        return PackedArchive(
            place, inspected.digest, inspected.size_bytes, inspected.unpacked_size_bytes
        )


class UnreadModels(LoadedModels):
    """Models in AWS, whose content is unknown at synth."""

    def check(self, target: Target | None) -> Report:  # noqa: ARG002 - it cannot be read
        return Report("", ())

    def holds(self, model_name: str) -> bool:  # noqa: ARG002 - the content is unknown
        return True

    def only_model(self, name: str) -> str:
        return name


@dataclass(frozen=True)
class StoredModels(UnreadModels):
    """An archive in a bucket. Its content is unknown."""

    bucket: s3.IBucket
    key: str

    @property
    def description(self) -> str:
        return f"the archive {self.key}"

    def content_digest(self, model_name: str) -> str:  # noqa: ARG002 - the key identifies the content
        return blake3(self.key.encode()).hexdigest()

    def locate(self, model_name: str, scope: Construct) -> ModelLocation:  # noqa: ARG002 - it is already in S3
        return self._location(
            allow("LoadModel", ["s3:GetObject"], [self.bucket.arn_for_objects(self.key)])
        )

    def places(self, property: str) -> Iterator[Place]:
        yield from Place.of_bucket(property, "models", self.bucket)

    def _location(self, *statements: Statement, is_compressed: bool = True) -> ModelLocation:
        decrypt = decrypt_statements("DecryptModel", self.bucket.encryption_key)
        url = f"s3://{self.bucket.bucket_name}/{self.key}"
        return ModelLocation(url, (*statements, *decrypt), is_compressed=is_compressed)


@dataclass(frozen=True)
class UncompressedModels(StoredModels):
    """Model folders under a prefix, which is ``key``."""

    @property
    def description(self) -> str:
        return f"the uncompressed models under {self.key}"

    def locate(self, model_name: str, scope: Construct) -> ModelLocation:  # noqa: ARG002 - it is already in S3
        read = allow("LoadModel", ["s3:GetObject"], [self.bucket.arn_for_objects(f"{self.key}*")])
        return self._location(
            read, allow_to_list("ListModel", self.bucket, self.key), is_compressed=False
        )


@dataclass(frozen=True)
class ArchivePrefix(StoredModels):
    """Archives that other programs put under a prefix, which is ``key``.

    Their names are unknown.
    """

    @property
    def description(self) -> str:
        return f"the archives under {self.key}"

    def holds(self, model_name: str) -> bool:  # noqa: ARG002 - a single-model endpoint needs one archive
        return False

    def only_model(self, name: str) -> str:
        raise InvalidValueError(
            f'model "{name}": must be one archive, got {self.description}; use '
            "ModelSource.from_bucket"
        )


@dataclass(frozen=True)
class PackagedModel(UnreadModels):
    """A model package, which contains the image and the models."""

    model_package_name: str

    @property
    def description(self) -> str:
        return f"the model package {self.model_package_name}"

    def places(self, property: str) -> Iterator[Place]:
        parts = self.model_package_name.split(":")
        # A name without ARN is one of this account and Region.
        if not is_token(self.model_package_name) and len(parts) > _ACCOUNT:
            # AWS publishes the packages of its Marketplace from accounts that everyone may use.
            is_public = is_of_marketplace(self.model_package_name)
            account = None if is_public else parts[_ACCOUNT]
            yield Place(property, "model package", parts[_REGION], account, self.model_package_name)

    def content_digest(self, model_name: str) -> str:  # noqa: ARG002 - the name identifies the content
        return blake3(self.model_package_name.encode()).hexdigest()

    def locate(self, model_name: str, scope: Construct) -> ModelLocation:  # noqa: ARG002 - nothing to add
        return ModelLocation("", (), model_package_name=self.model_package_name)


def _link_or_copy(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    with partial_folder(destination.parent) as folder:
        draft = folder / destination.name
        try:
            draft.hardlink_to(source.resolve())
        except OSError:  # another file system, or one without hard links
            shutil.copyfile(source, draft)
        draft.replace(destination)
