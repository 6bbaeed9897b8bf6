"""Lists and changes the archives below the S3 prefix of a multi-model endpoint."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsError, AwsReader, reaching_aws
from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_core.model_index import INDEX_FILE, ModelIndex
from constructs_triton_functions.model_sync import RESOURCE_TYPE
from constructs_triton_functions.model_sync.index import Index, read_index, update_index
from constructs_triton_functions.model_sync.manifest import content_name
from constructs_triton_functions.model_sync.placement import Placement, SyncError
from constructs_triton_functions.model_sync.properties import FILES_FOLDER
from constructs_triton_functions.model_sync.pruning import prune
from constructs_triton_tools.aws.s3_client import s3_client
from constructs_triton_tools.aws.stack_resources import stack_resources
from constructs_triton_tools.operations.library_values import ArchiveFile, LibraryModel
from triton_model_check.model_repository.s3_keys import (
    archive_pattern,
    check_folder_prefix,
    pattern_owner,
)

if TYPE_CHECKING:
    import boto3

OWNER = "constructs-triton models"
"""The owner in the metadata of the objects that this module uploads."""
_FILES = re.compile(rf"{FILES_FOLDER}[^/]+/[0-9a-f]{{32}}/")
_DIGEST = re.compile(r"-[0-9a-f]{8}\.tar\.gz")


class ModelPrefix:
    """The S3 ``prefix`` of ``bucket``, accessed through ``session``."""

    def __init__(self, session: boto3.Session, bucket: str, prefix: str) -> None:
        if prefix:
            check_folder_prefix("prefix", prefix)
        self._bucket = bucket
        self._prefix = prefix
        self._client = s3_client(session)
        self._placement = Placement(self._client, bucket, prefix, OWNER)

    @property
    def url(self) -> str:
        """``s3://<bucket>/<prefix>``."""
        return f"s3://{self._bucket}/{self._prefix}"

    def models(self) -> list[LibraryModel]:
        """Return every model of the index, in alphabetical order."""
        with _errors(self.url):
            index = read_index(self._client, self._bucket, self._prefix)
            objects = self._objects()
        return [self._placed(name, index, objects) for name in sorted(index.target_models)]

    def nameless(self) -> list[str]:
        """Return the archives below the prefix that no name refers to."""
        with _errors(self.url):
            index = read_index(self._client, self._bucket, self._prefix)
            named = set(index.target_models.values())
            return sorted(
                key for key in self._objects() if key.endswith(".tar.gz") and key not in named
            )

    def removed(self) -> list[str]:
        """Return the models of deployments that were removed by hand since."""
        with _errors(self.url):
            return read_index(self._client, self._bucket, self._prefix).removed

    def refuse_collisions(self, names: Iterable[str]) -> None:
        """Check that a grant for one of the names allows no archive of another model.

        A grant allows a name with any digest. The archive ``scorer-backbone.tar.gz``, which is not
        named after its content, matches ``scorer-????????.tar.gz``.
        """
        with _errors(self.url):
            index = read_index(self._client, self._bucket, self._prefix)
            archives = {*self._objects(), *index.target_models.values()}
        wanted = set(names)
        owners = {target: name for name, target in index.target_models.items()}
        for target_model in sorted(archives):
            owner = pattern_owner(target_model)
            if owner in wanted and (
                owners.get(target_model, owner) != owner or not _DIGEST.search(target_model)
            ):
                raise InvalidValueError(
                    f'{self.url}: grants for "{owner}" allow "{archive_pattern(owner)}", which '
                    f'matches the archive "{target_model}" of another model; '
                    "rename the model or that archive"
                )

    def upload(self, name: str, archive: ArchiveFile) -> tuple[str, bool]:
        """Upload an archive unless it exists; return its target model and
        whether it was uploaded.
        """
        target_model = content_name(name, archive.digest)
        source_key = f"{archive.digest}.tar.gz"
        with _errors(f"{self.url}{target_model}"):
            if self._placement.is_placed(source_key, None, target_model):
                return target_model, False
            self._client.upload_file(
                str(archive.path),
                self._bucket,
                self._prefix + target_model,
                ExtraArgs={"Metadata": self._placement.metadata(source_key)},
            )
        return target_model, True

    def name(self, target_models: dict[str, str]) -> None:
        """Let names refer to archives that exist."""
        self._update(lambda index: index.with_models(target_models, time.time()))

    def forget(self, name: str, *, is_deleting: bool) -> str:
        """Remove a name, and its archive if ``is_deleting``;
        return the target model that it referred to.
        """
        known = {model.name: model for model in self.models()}
        if name not in known:
            names = {model_name: model.target_model for model_name, model in known.items()}
            raise ModelIndex(names, self.url + INDEX_FILE).unknown_name(name)
        index = self._update(lambda before: before.without_model(name, time.time()))
        target_model = known[name].target_model
        if is_deleting and target_model not in index.target_models.values():
            with _errors(self.url + target_model):
                self._client.delete_object(Bucket=self._bucket, Key=self._prefix + target_model)
            self._update(lambda before: before.without_retired({target_model}))
        return target_model

    def restore(self, name: str) -> str:
        """Let a removed name refer to its last archive again; return the target model.

        An archive without a name is kept with the time when it lost it, until it is deleted.
        """
        with _errors(self.url):
            index = read_index(self._client, self._bucket, self._prefix)
            present = self._objects()
        if name in index.target_models:
            return index.target_models[name]

        lost = {
            target: since
            for target, since in index.retired.items()
            if target in present and name in (pattern_owner(target), _plain_owner(target))
        }
        if not lost:
            raise InvalidValueError(
                f"{self.url}: no archive of {name!r} without a name exists, so it cannot be "
                f"restored; add the model with `models add {name} SOURCE`, or deploy a change of "
                "the models"
            )
        target_model = max(lost, key=lambda target: lost[target])
        self.name({name: target_model})
        return target_model

    def prune(self, retention_seconds: float) -> list[str]:
        """Delete archives of this module that have had no name for this long;
        return their target models.
        """
        with _errors(self.url):
            index = read_index(self._client, self._bucket, self._prefix)
            return prune(self._placement, index.expired(retention_seconds, time.time()))

    def _update(self, change: Any) -> Index:
        with _errors(self.url):
            return update_index(self._client, self._bucket, self._prefix, change)

    def _objects(self) -> dict[str, Any]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix
        )
        found: dict[str, Any] = {}
        for page in pages:
            for listed in page.get("Contents", ()):
                key = listed["Key"].removeprefix(self._prefix)
                # A deployment places models as files there; an archive among them is a file of
                # its model.
                if not _FILES.match(key):
                    found[key] = listed
        return found

    def _placed(self, name: str, index: Index, objects: dict[str, Any]) -> LibraryModel:
        target_model = index.target_models[name]
        found = objects.get(target_model)
        return LibraryModel(
            name=name,
            target_model=target_model,
            size_bytes=None if found is None else found["Size"],
            modified=None if found is None else found["LastModified"].isoformat(),
            is_deployed=name in index.deployed,
        )


def find_prefix(session: boto3.Session, stack: str, resource: str | None) -> ModelPrefix:
    """Return the prefix that a deployed stack fills;
    ``resource`` is its logical ID if there are several.
    """
    with _errors(f"stack {stack}"):
        found = list(stack_resources(AwsReader(session).members, stack))
    # Two nested stacks can have the same logical ID.
    urls = [
        (str(row["LogicalResourceId"]), str(row.get("PhysicalResourceId", "")))
        for row in found
        if row["ResourceType"] == RESOURCE_TYPE
    ]
    chosen = [url for name, url in urls if resource in (None, name)]
    if len(chosen) != 1:
        names = ", ".join(name for name, _ in urls) or "none"
        raise InvalidValueError(
            f"stack {stack}: must have one {RESOURCE_TYPE}, got {names}; "
            "choose one with resource (--resource), or give bucket and prefix"
        )
    bucket, _, prefix = chosen[0].removeprefix("s3://").partition("/")
    return ModelPrefix(session, bucket, prefix)


def _plain_owner(target_model: str) -> str:
    """The model of an archive that is not named after its content."""
    return target_model.removesuffix(".tar.gz")


@contextmanager
def _errors(place: str) -> Iterator[None]:
    try:
        with reaching_aws("s3"):
            yield
    except SyncError as error:
        raise ArchiveError(str(error)) from error
    except AwsError as error:
        raise ArchiveError(f"{place}: {error}") from error
