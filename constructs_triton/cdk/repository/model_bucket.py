"""The bucket of a repository, its KMS keys, and the permissions of endpoints to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys
from constructs_triton.cdk.permissions.statements import Statement, allow, allow_to_list
from constructs_triton_functions.model_sync.properties import SyncProperties


@dataclass(frozen=True, slots=True)
class ModelKeys:
    """The keys that roles need to read models; ``current`` is ``None`` if it is not known or there
    is none.

    ``creates_bucket`` is whether the bucket belongs to the repository.
    """

    current: kms.IKey | None
    previous: Sequence[kms.IKey]
    creates_bucket: bool

    @property
    def all(self) -> list[kms.IKey]:
        """The current key first."""
        return [*([] if self.current is None else [self.current]), *self.previous]

    @property
    def data(self) -> DataUnderKeys:
        """The models with their keys."""
        return DataUnderKeys("models", [("bucket", self.current)], self.previous)

    def read_statements(self) -> list[Statement]:
        """Return the permission of an endpoint's role to decrypt models; none without a key."""
        return self.data.read_statements("DecryptModels")

    def with_keys(self, properties: SyncProperties) -> SyncProperties:
        """Add the keys to the properties of a custom resource."""
        return replace(
            properties,
            encryption_key=None if self.current is None else self.current.key_arn,
            previous_encryption_keys=[key.key_arn for key in self.previous],
            creates_bucket=self.creates_bucket,
        )


def create_bucket(
    scope: Construct,
    *,
    encryption_key: kms.IKey | None,
    versioned: bool,
    removal_policy: RemovalPolicy,
) -> s3.Bucket:
    """Create a private, encrypted bucket ``Bucket`` that accepts TLS only."""
    has_key = encryption_key is not None
    return s3.Bucket(
        scope,
        "Bucket",
        encryption=s3.BucketEncryption.KMS if has_key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=encryption_key,
        bucket_key_enabled=True if has_key else None,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        versioned=True if versioned else None,
        # An interrupted multipart upload leaves parts that cost money and that no list shows.
        lifecycle_rules=[
            s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1))
        ],
        removal_policy=removal_policy,
    )


def read_statements(bucket: s3.IBucket, prefix: str, keys: ModelKeys) -> list[Statement]:
    """Return the permissions of an endpoint's role: read and list what is below a prefix."""
    return [
        allow("LoadModels", ["s3:GetObject"], [bucket.arn_for_objects(f"{prefix}*")]),
        allow_to_list("ListModels", bucket, prefix),
        *keys.read_statements(),
    ]
