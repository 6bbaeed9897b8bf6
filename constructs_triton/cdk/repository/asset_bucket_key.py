"""The key of an asset bucket that the app creates itself, as ``AppStagingSynthesizer`` does.

The bucket of ``cdk bootstrap`` is in no stack of the app, so its key is not known:
``asset_encryption_key`` names it.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.validation.read_once import stack_of


def asset_keys(
    scope: Construct, bucket_name: str, given: Sequence[kms.IKey | None]
) -> list[kms.IKey]:
    """Return the keys that objects of the asset bucket may have: those given, or the bucket's own.

    Args:
        scope: A construct whose stack uploads assets to the bucket.
        bucket_name: Name of the bucket.
        given: Keys that the user has set.
    """
    known = [key for key in given if key is not None]
    if known:
        return known
    key = _key_of_bucket(scope, bucket_name)
    return [] if key is None else [key]


def _key_of_bucket(scope: Construct, bucket_name: str) -> kms.IKey | None:
    wanted = stack_of(scope).resolve(bucket_name)
    for construct in scope.node.root.node.find_all():
        if not isinstance(construct, s3.CfnBucket) or construct.bucket_name is None:
            continue
        bucket = construct.node.scope
        if isinstance(bucket, s3.Bucket) and _named(construct) == wanted:
            return bucket.encryption_key
    return None


def _named(bucket: s3.CfnBucket) -> object:
    return stack_of(bucket).resolve(bucket.bucket_name)
