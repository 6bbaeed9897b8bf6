"""What S3 does for a role: permissions and conditions for its keys, and the owner of a bucket."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_kms as kms
from constructs import Construct

from constructs_triton.cdk.permissions.statements import Conditions, Statement, allow
from constructs_triton.cdk.validation.read_once import environment_of, stack_of
from constructs_triton_core.facts.encrypted_data import READ_ACTIONS
from constructs_triton_core.tokens import is_token


def via_s3(key: kms.IKey) -> Conditions:
    """Return the condition that S3 uses the key in this Region.

    In China, no AWS document says which suffix ``kms:ViaService`` has. The CDK's bootstrap template
    uses ``amazonaws.com`` in every partition, so both are allowed there, and in stacks without a
    Region.
    """
    region = key.stack.region
    if is_token(region) or region.startswith("cn-"):
        services = [f"s3.{Aws.REGION}.{suffix}" for suffix in ("amazonaws.com", "amazonaws.com.cn")]
        return {"StringEquals": {"kms:ViaService": services}}
    return {"StringEquals": {"kms:ViaService": f"s3.{Aws.REGION}.{Aws.URL_SUFFIX}"}}


def in_own_account(scope: Construct, bucket_name: str) -> Conditions | None:
    """Return the condition that a bucket whose name contains this account belongs to it.

    The name of the CDK's asset bucket can be guessed. If the bucket is deleted, another account can
    create one of the same name, and endpoints would load its models. A bucket with another name may
    belong to another account, so there is no condition for it.
    """
    account = environment_of(scope).account
    account = "AWS::AccountId" if is_token(account) else account
    if account not in str(stack_of(scope).resolve(bucket_name)):
        return None
    return {"StringEquals": {"aws:ResourceAccount": Aws.ACCOUNT_ID}}


def decrypt_statements(sid: str, *keys: kms.IKey | None) -> tuple[Statement, ...]:
    """Statements to decrypt objects that S3 reads in this Region; none for ``None``."""
    statements: list[Statement] = []
    for key in keys:
        if key is None:
            continue
        number = len(statements) + 1
        unique_sid = sid if number == 1 else f"{sid}{number}"
        statements.append(allow(unique_sid, READ_ACTIONS, [key.key_arn], via_s3(key)))
    return tuple(statements)
