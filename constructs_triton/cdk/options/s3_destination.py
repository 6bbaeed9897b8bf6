"""A prefix in S3 that SageMaker writes to, and the permissions for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys, check_previous_keys
from constructs_triton.cdk.permissions.places import Place
from constructs_triton.cdk.permissions.statements import Statement, allow
from constructs_triton.cdk.validation.property_types import BUCKET, KEY, check_has, check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.encrypted_data import DataName
from constructs_triton_core.tokens import is_token
from triton_model_check.model_repository.s3_keys import check_has_no_bucket


@dataclass(frozen=True, slots=True)
class Destination:
    """A prefix of a bucket, and the keys that its objects may have.

    ``owner`` is the option that sets them.
    """

    bucket: s3.IBucket
    prefix: str
    name: DataName
    owner: str
    encryption_key: kms.IKey | None = None
    previous: Sequence[kms.IKey] = ()

    @property
    def uri(self) -> str:
        """``s3://<bucket>/<prefix>``."""
        return f"s3://{self.bucket.bucket_name}/{self.prefix}"

    @property
    def objects_arn(self) -> str:
        """The ARN of all objects below the prefix."""
        return self.bucket.arn_for_objects(f"{self.prefix}/*")

    @property
    def key_arn(self) -> str | None:
        """The ARN of the key, or ``None`` without a key."""
        return None if self.encryption_key is None else self.encryption_key.key_arn

    @property
    def places(self) -> list[Place]:
        """Where the bucket is."""
        return list(Place.of_bucket(f"{self.owner}.bucket", "bucket", self.bucket))

    @property
    def data(self) -> DataUnderKeys:
        """The objects, with the key of the bucket and that of the option."""
        keys = (
            (f"{self.owner}.bucket", self.bucket.encryption_key),
            (f"{self.owner}.encryption_key", self.encryption_key),
        )
        return DataUnderKeys(self.name, keys, self.previous, self.owner)

    def write_statements(self, what: str) -> list[Statement]:
        """Permissions to write objects below the prefix; ``what`` is part of the statement ids."""
        return [
            allow(f"Write{what}", ["s3:AbortMultipartUpload", "s3:PutObject"], [self.objects_arn]),
            # botocore sagemaker service model, KmsKeyId: the execution role encrypts with the key.
            *self.data.write_statements(f"Encrypt{what}", "kms:Encrypt"),
        ]


def check_places(
    owner: str, bucket: s3.IBucket, encryption_key: kms.IKey | None, previous: Sequence[kms.IKey]
) -> None:
    """Check the types of a bucket and its keys."""
    check_has(f"{owner}.bucket", bucket, *BUCKET)
    check_has(f"{owner}.encryption_key", encryption_key, *KEY)
    check_previous_keys(previous, owner)


def check_prefix(property: str, prefix: str) -> None:
    """Check a prefix that SageMaker appends "/" and a key to: it neither begins nor ends with "/".

    It must not be empty, because the execution role would then be allowed to write to the whole
    bucket. CDK tokens pass.

    Raises:
        InvalidValueError: not a string, empty, or with "/" at an end.
    """
    check_type(property, prefix, (str, '"captured"'))
    if is_token(prefix):
        return
    check_has_no_bucket(property, prefix)
    inner = prefix.strip("/")
    if not inner:
        raise InvalidValueError(f'{property}: must not be empty, got "{prefix}"; write "captured"')
    if inner != prefix:
        raise InvalidValueError(
            f'{property}: must not begin or end with "/", got "{prefix}"; write "{inner}"'
        )
