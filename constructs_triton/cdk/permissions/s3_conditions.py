"""Conditions on what S3 does for a role: the keys that it uses, and the owner of a bucket."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Aws, Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from constructs_triton.tokens import is_token

__all__ = ["Conditions", "in_own_account", "via_s3"]

Conditions = Mapping[str, Mapping[str, object]]


def via_s3(key: kms.IKey) -> Conditions:
    """Return the condition that S3 uses the key in this Region.

    In China, no AWS document says which suffix ``kms:ViaService`` has. The CDK's bootstrap template uses
    ``amazonaws.com`` in every partition, so both are allowed there, and in stacks without a Region.
    """
    region = key.stack.region
    if is_token(region) or region.startswith("cn-"):
        services = [f"s3.{Aws.REGION}.{suffix}" for suffix in ("amazonaws.com", "amazonaws.com.cn")]
        return {"StringEquals": {"kms:ViaService": services}}
    return {"StringEquals": {"kms:ViaService": f"s3.{Aws.REGION}.{Aws.URL_SUFFIX}"}}


def in_own_account(scope: Construct, bucket_name: str) -> Conditions | None:
    """Return the condition that a bucket whose name contains this account belongs to it.

    The name of the CDK's asset bucket can be guessed. If the bucket is deleted, another account can create
    one of the same name, and endpoints would load its models. A bucket with another name may belong to
    another account, so there is no condition for it.
    """
    stack = Stack.of(scope)
    account = stack.account
    account = "AWS::AccountId" if is_token(account) else account
    if account not in str(stack.resolve(bucket_name)):
        return None
    return {"StringEquals": {"aws:ResourceAccount": Aws.ACCOUNT_ID}}
