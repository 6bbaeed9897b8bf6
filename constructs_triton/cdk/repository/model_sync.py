"""The deploy-time function that places archives under a repository's prefix,
and its custom resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.custom_resources.function import ContinuedFunction, FunctionDefinition
from constructs_triton.cdk.permissions.role_permissions import (
    MOST_CHARACTERS,
    RolePermissions,
    fits,
)
from constructs_triton.cdk.permissions.s3_conditions import decrypt_statements
from constructs_triton.cdk.permissions.statements import Statement, allow
from constructs_triton.cdk.repository.archive_assets import (
    LIST_LABEL,
    ArchiveAsset,
    StackAssets,
    label_of,
)
from constructs_triton.cdk.repository.asset_bucket_key import asset_keys
from constructs_triton.cdk.repository.model_bucket import ModelKeys
from constructs_triton.cdk.repository.sync_permissions import (
    READ_ACTIONS,
    deletion_statements,
    place_statements,
    read_statement,
)
from constructs_triton_functions import FUNCTION_TIMEOUT_SECONDS, SERVICE_TIMEOUT_SECONDS
from constructs_triton_functions.model_sync import RESOURCE_TYPE
from constructs_triton_functions.model_sync.manifest import ListedArchive, Manifest
from constructs_triton_functions.model_sync.properties import SyncProperties
from triton_model_check.model_repository.packing import ARCHIVE_SUFFIX

# An ARN has at most 1,100 characters, since a key of S3 has at most 1,024, and a role has room for
# 30,720.
_FEW = 15


@dataclass(frozen=True, slots=True)
class S3Archive:
    """An archive that is already in a bucket."""

    bucket: s3.IBucket
    object_key: str


MODEL_SYNC_FUNCTION = FunctionDefinition(
    description="Copies Triton model archives inside S3 (constructs-triton)",
    folder="model_sync",
    timeout_seconds=FUNCTION_TIMEOUT_SECONDS,
    memory_mib=512,
    services=("lambda",),
)
"""The function of one repository."""


class ModelSyncFunction(ContinuedFunction):
    """A function that places models: of one repository, or of one model that is placed as files."""

    def create_resource(
        self,
        scope: Construct,
        resource_type: str,
        statements: Sequence[Statement],
        properties: SyncProperties,
    ) -> CustomResource:
        """Create the custom resource of the function, after the function's permissions."""
        permissions = RolePermissions(scope, "Policy", role=self.role, statements=statements)
        timeout = Duration.seconds(SERVICE_TIMEOUT_SECONDS)
        given = properties.to_cloudformation()
        resource = self.add_custom_resource(scope, "Resource", resource_type, given, timeout)
        resource.node.add_dependency(permissions, self.continuation_policy)
        return resource


class ModelSync(Construct):
    """Keeps archives under ``prefix`` of ``bucket``, and ``index.json`` beside them.

    ``archives`` and ``stored_archives`` map a model's logical name to its target model and its
    archive. What uses the prefix depends on this construct, so that no model is asked for before it
    is there. The archives outlive it unless ``remove_on_delete``. An archive without a name in the
    repository is kept; a deployment after ``prune_after`` removes it. ``asset_encryption_key`` is
    the key that the asset bucket's objects are encrypted with, where the key's policy leaves it to
    IAM who may decrypt.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        assets: StackAssets,
        bucket: s3.IBucket,
        prefix: str,
        keys: ModelKeys,
        archives: Mapping[str, tuple[str, ArchiveAsset]],
        stored_archives: Mapping[str, tuple[str, S3Archive]],
        asset_encryption_key: kms.IKey | None = None,
        prune_after: Duration | None = None,
        remove_on_delete: bool = False,
    ) -> None:
        super().__init__(scope, id)
        sync_function = ModelSyncFunction(self, "Function", MODEL_SYNC_FUNCTION)
        given_archives = [stored for _, stored in stored_archives.values()]
        given_buckets = _distinct([stored.bucket for stored in given_archives])
        manifest = _manifest(archives, stored_archives, given_buckets)
        asset = assets.add_json(manifest.to_json(), manifest.digest, label_of(LIST_LABEL, scope))
        properties = SyncProperties(
            source_bucket=asset.bucket_name,
            manifest_key=asset.object_key,
            manifest_digest=manifest.digest,
            destination_bucket=bucket.bucket_name,
            prefix=prefix,
            given_buckets=[each.bucket_name for each in given_buckets],
            prune_after_seconds=None if prune_after is None else prune_after.to_seconds(),
            remove_on_delete=remove_on_delete,
        )
        keys_of_assets = asset_keys(self, asset.bucket_name, [asset_encryption_key])
        other_statements = [
            *decrypt_statements("DecryptArchives", *keys_of_assets),
            *_given_statements(given_archives),
            *place_statements(bucket, prefix, keys),
            *deletion_statements(
                bucket, prefix, prune_after=prune_after, remove_on_delete=remove_on_delete
            ),
        ]
        archive_keys = [archive.object_key for _, archive in archives.values()]
        statements = _with_read_statement(
            self,
            asset.bucket_name,
            asset.object_key,
            archive_keys,
            other_statements,
            are_few=len(archives) + len(stored_archives) <= _FEW,
        )
        self.resource = sync_function.create_resource(
            self, RESOURCE_TYPE, statements, keys.with_keys(properties)
        )


def _distinct(buckets: Sequence[s3.IBucket]) -> list[s3.IBucket]:
    return list({bucket.bucket_name: bucket for bucket in buckets}.values())


def _manifest(
    archives: Mapping[str, tuple[str, ArchiveAsset]],
    stored_archives: Mapping[str, tuple[str, S3Archive]],
    given_buckets: Sequence[s3.IBucket],
) -> Manifest:
    """Return the list of archives that the function copies, and from which bucket each comes."""
    numbers = {bucket.bucket_name: number for number, bucket in enumerate(given_buckets)}
    listed = [
        ListedArchive(name, archive.object_key, target_model, archive.size_bytes)
        for name, (target_model, archive) in archives.items()
    ]
    for name, (target_model, stored) in stored_archives.items():
        number = numbers[stored.bucket.bucket_name]
        listed.append(ListedArchive(name, stored.object_key, target_model, given_bucket=number))
    return Manifest.of(listed)


# Permissions.


def _with_read_statement(
    scope: Construct,
    bucket_name: str,
    manifest_key: str,
    archive_keys: Sequence[str],
    statements: Sequence[Statement],
    *,
    are_few: bool,
) -> list[Statement]:
    """Add a statement to read the list and each archive by its key, or by a pattern if that is too
    long.

    The statements for a few archives always fit.
    """
    keys = sorted(set(archive_keys))
    if sum(map(len, keys)) < MOST_CHARACTERS:  # else thousands of keys would be resolved in vain
        exact = [read_statement(scope, bucket_name, [*keys, manifest_key]), *statements]
        if are_few or fits(scope, exact):
            return exact
    patterns = sorted({f"{key[: key.rfind('/') + 1]}*{ARCHIVE_SUFFIX}" for key in keys})
    return [read_statement(scope, bucket_name, [*patterns, manifest_key]), *statements]


def _given_statements(stored_archives: Sequence[S3Archive]) -> list[Statement]:
    """Statements to read archives that are in buckets of the user, and to decrypt them."""
    if not stored_archives:
        return []

    arns = {stored.bucket.arn_for_objects(stored.object_key) for stored in stored_archives}
    statements = [allow("ReadGiven", READ_ACTIONS, sorted(arns))]

    buckets = _distinct([stored.bucket for stored in stored_archives])
    keys = [bucket.encryption_key for bucket in buckets]
    key_arns = [key.key_arn for key in keys if key is not None]
    if key_arns:
        statements.append(allow("DecryptGiven", ["kms:Decrypt"], key_arns))
    return statements
