"""``CoreDump``: where the core dump of a crashed container is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.options.s3_destination import Destination, check_places, check_prefix
from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys
from constructs_triton.cdk.permissions.statements import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreDump:
    """Where SageMaker writes the core dump of a container that crashed.

    A core dump contains the memory of the process, including weights and requests, so restrict
    access to the bucket.

    Args:
        bucket: Bucket of the core dumps.
        prefix: Beginning of their keys. The execution role may write below it only.
        encryption_key: KMS key that encrypts them. Default: none is set.
        previous_encryption_keys: Further KMS keys that the bucket may have while its key changes.

    Raises:
        InvalidValueError: a value has the wrong type, or the prefix is empty or ends with "/".
    """

    bucket: s3.IBucket
    prefix: str = "core-dumps"
    encryption_key: kms.IKey | None = None
    previous_encryption_keys: Sequence[kms.IKey] = ()

    def __post_init__(self) -> None:
        check_places("core_dump", self.bucket, self.encryption_key, self.previous_encryption_keys)
        check_prefix("core_dump.prefix", self.prefix)


def core_dump_data(core_dump: CoreDump) -> DataUnderKeys:
    """The core dumps with their keys."""
    return core_dump_destination(core_dump).data


def core_dump_statements(core_dump: CoreDump) -> list[Statement]:
    """Permissions of the execution role."""
    return core_dump_destination(core_dump).write_statements("CoreDump")


def render_core_dump(core_dump: CoreDump) -> sagemaker.CfnEndpointConfig.CoreDumpConfigProperty:
    """Return the property of the production variant."""
    destination = core_dump_destination(core_dump)
    return sagemaker.CfnEndpointConfig.CoreDumpConfigProperty(
        destination_s3_uri=destination.uri, kms_key_id=destination.key_arn
    )


def core_dump_destination(core_dump: CoreDump) -> Destination:
    """The prefix of the core dumps, with its keys."""
    return Destination(
        core_dump.bucket,
        core_dump.prefix,
        "core dumps",
        "core_dump",
        core_dump.encryption_key,
        core_dump.previous_encryption_keys,
    )
