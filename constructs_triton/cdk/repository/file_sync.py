"""The custom resource that places one model as files below a repository's prefix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.permissions.s3_conditions import decrypt_statements
from constructs_triton.cdk.repository.archive_assets import (
    FILE_LABEL,
    FILE_LIST_LABEL,
    SMALL_FILES_LABEL,
    StackAssets,
    label_of,
)
from constructs_triton.cdk.repository.asset_bucket_key import asset_keys
from constructs_triton.cdk.repository.model_bucket import ModelKeys
from constructs_triton.cdk.repository.model_sync import MODEL_SYNC_FUNCTION, ModelSyncFunction
from constructs_triton.cdk.repository.staged_files import LARGE_SUFFIX, StagedModel
from constructs_triton.cdk.repository.sync_permissions import (
    deletion_statements,
    find_statement,
    place_statements,
    read_statement,
)
from constructs_triton_functions.model_sync import FILES_RESOURCE_TYPE
from constructs_triton_functions.model_sync.manifest import FileManifest, ListedFile
from constructs_triton_functions.model_sync.properties import SyncProperties

_MOST_KEYS = 20
"""Beyond this number of large files, the function may read the large files of all models in the
account's asset bucket. Its policy would otherwise grow with the number of files."""


# The function of one model has the code of that of a repository.
_FUNCTION = replace(
    MODEL_SYNC_FUNCTION, description="Places the files of a Triton model in S3 (constructs-triton)"
)


class FileSync(Construct):
    """Places the files of a model in the folder ``<digest>/`` below ``prefix`` of ``bucket``.

    What uses the files depends on this construct. ``prefix`` belongs to this model alone. The files
    outlive the construct unless ``remove_on_delete``. Those of an earlier content are kept, or are
    deleted by a deployment after ``prune_after``. ``asset_encryption_key`` is the key of the asset
    bucket, where its policy leaves it to IAM who may decrypt.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        bucket: s3.IBucket,
        prefix: str,
        staged: StagedModel,
        keys: ModelKeys,
        asset_encryption_key: kms.IKey | None = None,
        prune_after: Duration | None = None,
        remove_on_delete: bool = False,
    ) -> None:
        super().__init__(scope, id)
        self.prefix = f"{prefix}{staged.digest}/"
        assets = _Assets(self, staged)
        properties = SyncProperties(
            source_bucket=assets.manifest.bucket_name,
            manifest_key=assets.manifest.object_key,
            manifest_digest=assets.manifest_digest,
            destination_bucket=bucket.bucket_name,
            prefix=prefix,
            folder=f"{staged.digest}/",
            prune_after_seconds=None if prune_after is None else prune_after.to_seconds(),
            remove_on_delete=remove_on_delete,
        )
        bucket_name = assets.manifest.bucket_name
        keys_of_assets = asset_keys(self, bucket_name, [asset_encryption_key])
        statements = [
            read_statement(self, bucket_name, assets.keys_to_read()),
            *decrypt_statements("DecryptFiles", *keys_of_assets),
            *place_statements(bucket, prefix, keys),
            *([] if keys.all else [find_statement(bucket, prefix)]),
            *deletion_statements(
                bucket, prefix, prune_after=prune_after, remove_on_delete=remove_on_delete
            ),
        ]
        function = ModelSyncFunction(self, "Function", _FUNCTION)
        self.resource = function.create_resource(
            self, FILES_RESOURCE_TYPE, statements, keys.with_keys(properties)
        )


class _Assets:
    """The files of a staged model as assets of the stack, and the list of them."""

    def __init__(self, scope: Construct, staged: StagedModel) -> None:
        assets = StackAssets(scope)
        self._large_keys = {
            each.digest: assets.add_file(
                each.copy, each.digest, f"{FILE_LABEL}{each.path}"
            ).object_key
            for each in {each.digest: each for each in staged.large}.values()
        }
        zip_key = None
        if staged.zip is not None:
            zip_key = assets.add_file(
                staged.zip, staged.zip.stem, label_of(SMALL_FILES_LABEL, scope)
            ).object_key
        manifest = FileManifest.of(self._listed(staged), zip_key)
        self.manifest_digest = manifest.digest
        self.manifest = assets.add_json(
            manifest.to_json(), manifest.digest, label_of(FILE_LIST_LABEL, scope)
        )
        self._small_keys = [key for key in (zip_key, self.manifest.object_key) if key is not None]

    def _listed(self, staged: StagedModel) -> list[ListedFile]:
        """Return all files with the place of their content: an object, or a part of the zip."""
        return [
            *(
                ListedFile(each.path, each.size_bytes, self._large_keys[each.digest])
                for each in staged.large
            ),
            *(
                ListedFile(each.path, each.size_bytes, offset=each.offset, crc32=each.crc32)
                for each in staged.small
            ),
        ]

    def keys_to_read(self) -> Sequence[str]:
        """The keys that the function reads, or a pattern for the large files if there are many."""
        keys = sorted(self._large_keys.values())
        if len(keys) > _MOST_KEYS:
            keys = sorted({f"{key[: key.rfind('/') + 1]}*{LARGE_SUFFIX}" for key in keys})
        return [*keys, *self._small_keys]
