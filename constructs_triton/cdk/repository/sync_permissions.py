"""Permissions of the deploy-time function that places models: below one prefix,
and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, Duration
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.permissions.s3_conditions import (
    decrypt_statements,
    in_own_account,
    via_s3,
)
from constructs_triton.cdk.permissions.statements import Statement, allow, allow_to_list
from constructs_triton.cdk.repository.model_bucket import ModelKeys
from constructs_triton_core.facts.encrypted_data import WRITE_ACTIONS

# S3 copies the tags of an object too, and refuses a copy without the permission. Malware scanners
# set tags.
READ_ACTIONS = ["s3:GetObject", "s3:GetObjectTagging"]

# GetObject verifies what was placed; the rest belongs to large archives, copied in parts.
_PLACE_ACTIONS = [
    "s3:GetObject",
    "s3:PutObject",
    "s3:PutObjectTagging",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
]


def read_statement(scope: Construct, bucket_name: str, keys: Sequence[str]) -> Statement:
    """Statement to read objects of the CDK's asset bucket by their keys or patterns."""
    bucket = f"arn:{Aws.PARTITION}:s3:::{bucket_name}"
    return allow(
        "ReadArchives",
        READ_ACTIONS,
        [f"{bucket}/{key}" for key in keys],
        in_own_account(scope, bucket_name),
    )


def place_statements(bucket: s3.IBucket, prefix: str, keys: ModelKeys) -> list[Statement]:
    """Statements to write objects under a prefix,
    including multipart uploads and new encryption.
    """
    statements = [
        allow("PlaceArchives", _PLACE_ACTIONS, [bucket.arn_for_objects(f"{prefix}*")]),
        allow("FindAbandonedUploads", ["s3:ListBucketMultipartUploads"], [bucket.bucket_arn]),
    ]
    if (key := keys.current) is not None:
        statements.append(allow("EncryptArchives", WRITE_ACTIONS, [key.key_arn], via_s3(key)))
    return [*statements, *_encrypt_again_statements(bucket, prefix, keys)]


def _encrypt_again_statements(bucket: s3.IBucket, prefix: str, keys: ModelKeys) -> list[Statement]:
    """Statements to find and copy the objects of others that have a previous key;
    none without a key.
    """
    if not keys.all:
        return []
    return [
        find_statement(bucket, prefix),
        allow("CopyTags", ["s3:GetObjectTagging"], [bucket.arn_for_objects(f"{prefix}*")]),
        *decrypt_statements("DecryptPrevious", *keys.previous),
    ]


def find_statement(bucket: s3.IBucket, prefix: str) -> Statement:
    """Statement to list the objects under a prefix."""
    return allow_to_list("FindFiles", bucket, prefix)


def deletion_statements(
    bucket: s3.IBucket, prefix: str, *, prune_after: Duration | None, remove_on_delete: bool
) -> list[Statement]:
    """Statements to delete what is out of use, and everything when the resource is deleted."""
    objects = [bucket.arn_for_objects(f"{prefix}*")]
    pruning = (
        [allow("PruneArchives", ["s3:DeleteObject"], objects)] if prune_after is not None else []
    )
    if not remove_on_delete:
        return pruning
    removal = allow("RemoveArchives", ["s3:DeleteObject", "s3:DeleteObjectVersion"], objects)
    return [
        *pruning,
        removal,
        allow("ListArchives", ["s3:ListBucketVersions"], [bucket.bucket_arn]),
    ]
