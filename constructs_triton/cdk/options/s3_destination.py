"""A prefix in S3 that SageMaker writes to, and the permissions for it."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from constructs_triton.cdk.validation.property_types import BUCKET, KEY, check_has, check_type
from constructs_triton.model_repository.s3_keys import check_output_prefix

__all__ = ["Destination", "check_places", "check_prefix", "encrypt_statements"]


@dataclass(frozen=True, slots=True)
class Destination:
    """A prefix of a bucket, and the key that encrypts its objects."""

    bucket: s3.IBucket
    prefix: str
    encryption_key: kms.IKey | None = None

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

    def write_statements(self, what: str) -> list[iam.PolicyStatement]:
        """Permissions to write objects below the prefix; ``what`` is part of the statement ids."""
        return [
            iam.PolicyStatement(
                sid=f"Write{what}",
                actions=["s3:AbortMultipartUpload", "s3:PutObject"],
                resources=[self.objects_arn],
            ),
            *encrypt_statements(what, self.bucket.encryption_key, self.encryption_key),
        ]


def encrypt_statements(what: str, *keys: kms.IKey | None) -> list[iam.PolicyStatement]:
    """Permissions to encrypt with the keys that are not ``None``."""
    arns = list(dict.fromkeys(key.key_arn for key in keys if key is not None))
    if not arns:
        return []
    # botocore sagemaker service model, KmsKeyId: the execution role encrypts with the key.
    # Amazon S3 user guide, multipart upload and permissions: uploads in parts need kms:Decrypt too.
    actions = ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"]
    return [iam.PolicyStatement(sid=f"Encrypt{what}", actions=actions, resources=arns)]


def check_places(owner: str, bucket: s3.IBucket, encryption_key: kms.IKey | None) -> None:
    """Check the types of a bucket and a key.

    Raises:
        InvalidValueError: a name or an ARN is given in place of the bucket or the key.
    """
    check_has(f"{owner}.bucket", bucket, *BUCKET)
    check_has(f"{owner}.encryption_key", encryption_key, *KEY)


def check_prefix(property: str, prefix: str) -> None:
    """Check the prefix that SageMaker writes to.

    Raises:
        InvalidValueError: not a string, empty, or with "/" at an end.
    """
    check_type(property, prefix, (str, '"captured"'))
    check_output_prefix(property, prefix)
