"""Permissions of the deploy-time function that places models: below one prefix, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.permissions.s3_conditions import decrypt_statements, in_own_account, via_s3
from constructs_triton.cdk.repository.model_bucket import ModelKeys
from constructs_triton_core.facts.encrypted_data import WRITE_ACTIONS

# S3 copies the tags of an object too, and refuses a copy without the permission. Malware scanners set tags.
READ_ACTIONS = ["s3:GetObject", "s3:GetObjectTagging"]


def read_statement(scope: Construct, bucket_name: str, keys: Sequence[str]) -> iam.PolicyStatement:
    """Statement to read objects of the CDK's asset bucket by their keys or patterns."""
    bucket = f"arn:{Aws.PARTITION}:s3:::{bucket_name}"
    return iam.PolicyStatement(
        sid="ReadArchives",
        actions=READ_ACTIONS,
        resources=[f"{bucket}/{key}" for key in keys],
        conditions=in_own_account(scope, bucket_name),
    )


def place_statements(bucket: s3.IBucket, prefix: str, keys: ModelKeys) -> list[iam.PolicyStatement]:
    """Statements to write objects under a prefix, including multipart uploads and new encryption."""
    statements = [
        iam.PolicyStatement(
            sid="PlaceArchives",
            # GetObject verifies what was placed; the rest belongs to large archives, copied in parts.
            actions=[
                "s3:GetObject",
                "s3:PutObject",
                "s3:PutObjectTagging",
                "s3:AbortMultipartUpload",
                "s3:ListMultipartUploadParts",
            ],
            resources=[bucket.arn_for_objects(f"{prefix}*")],
        ),
        iam.PolicyStatement(
            sid="FindAbandonedUploads",
            actions=["s3:ListBucketMultipartUploads"],
            resources=[bucket.bucket_arn],
        ),
    ]
    if keys.current is not None:
        statements.append(_key_statement(keys.current))
    return [*statements, *_encrypt_again_statements(bucket, prefix, keys)]


def _encrypt_again_statements(bucket: s3.IBucket, prefix: str, keys: ModelKeys) -> list[iam.PolicyStatement]:
    """Statements to find and copy the objects of others that have a previous key; none without a key."""
    if not keys.all:
        return []
    return [
        find_statement(bucket, prefix),
        iam.PolicyStatement(
            sid="CopyTags",
            actions=["s3:GetObjectTagging"],
            resources=[bucket.arn_for_objects(f"{prefix}*")],
        ),
        *decrypt_statements("DecryptPrevious", *keys.previous),
    ]


def find_statement(bucket: s3.IBucket, prefix: str) -> iam.PolicyStatement:
    """Statement to list the objects under a prefix."""
    return iam.PolicyStatement(
        sid="FindFiles",
        actions=["s3:ListBucket"],
        resources=[bucket.bucket_arn],
        conditions={"StringLike": {"s3:prefix": [f"{prefix}*"]}},
    )


def deletion_statements(
    bucket: s3.IBucket, prefix: str, *, prune_after: Duration | None, remove_on_delete: bool
) -> list[iam.PolicyStatement]:
    """Statements to delete what is out of use, and everything when the resource is deleted."""
    pruning = [_prune_statement(bucket, prefix)] if prune_after is not None else []
    removal = _removal_statements(bucket, prefix) if remove_on_delete else []
    return [*pruning, *removal]


def _prune_statement(bucket: s3.IBucket, prefix: str) -> iam.PolicyStatement:
    """Statement to delete objects under a prefix."""
    return iam.PolicyStatement(
        sid="PruneArchives",
        actions=["s3:DeleteObject"],
        resources=[bucket.arn_for_objects(f"{prefix}*")],
    )


def _removal_statements(bucket: s3.IBucket, prefix: str) -> list[iam.PolicyStatement]:
    """Statements to delete every version of every object under a prefix."""
    return [
        iam.PolicyStatement(
            sid="RemoveArchives",
            actions=["s3:DeleteObject", "s3:DeleteObjectVersion"],
            resources=[bucket.arn_for_objects(f"{prefix}*")],
        ),
        iam.PolicyStatement(
            sid="ListArchives", actions=["s3:ListBucketVersions"], resources=[bucket.bucket_arn]
        ),
    ]


def _key_statement(key: kms.IKey) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="EncryptArchives",
        actions=[*WRITE_ACTIONS],
        resources=[key.key_arn],
        conditions=via_s3(key),
    )
