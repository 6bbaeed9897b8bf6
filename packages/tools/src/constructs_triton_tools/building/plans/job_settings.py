"""Where a job runs and what it may use: role, bucket, keys, network, time limit and tags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from constructs_triton_core.errors import InvalidValueError

DEFAULT_PREFIX = "constructs-triton/compile/"
DEFAULT_SECONDS = 7200
# botocore sagemaker service model: RoleArn, ProcessingMaxRuntimeInSeconds, KmsKeyId, SecurityGroupId,
# SubnetId, Tag.
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/?[\w+=,.@/-]+")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_MOST_SECONDS = 777_600
_MOST_TAGS = 49
_OWN_TAG = ("constructs-triton", "compile")


@dataclass(frozen=True)
class JobSettings:
    """The settings of a job.

    Args:
        region: AWS Region of the job and of the bucket.
        role: ARN of the role of the job.
        bucket: Bucket of the inputs and of the results.
        prefix: Beginning of their keys, which ends with ``/``.
        max_seconds: After this time SageMaker stops the job.
        volume_gb: Size of the disk. Default: 30 GB, or less where the instance has less local NVMe.
        kms_key: KMS key of the results.
        subnets: Subnets of the job. Default: no network of yours.
        security_groups: Security groups of the job.
        is_isolated: Whether the job has no network. It needs none.
        tags: Tags of the job.
    """

    region: str
    role: str
    bucket: str
    prefix: str = DEFAULT_PREFIX
    max_seconds: int = DEFAULT_SECONDS
    volume_gb: int = 30
    kms_key: str | None = None
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    is_isolated: bool = True
    tags: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if _ROLE.fullmatch(self.role) is None:
            raise InvalidValueError(
                f'--role: must be the ARN of a role, got "{self.role}"; write it as '
                "arn:aws:iam::123456789012:role/PlanJobs"
            )
        if _BUCKET.fullmatch(self.bucket) is None:
            raise InvalidValueError(
                f'--bucket: must be the name of a bucket, got "{self.bucket}"; write it without s3://'
            )
        if not self.prefix.endswith("/") or self.prefix.startswith("/"):
            raise InvalidValueError(
                f'--prefix: must end with "/" and not begin with it, got "{self.prefix}"; write it as plans/'
            )
        if bool(self.subnets) != bool(self.security_groups):
            raise InvalidValueError("--subnet, --security-group: a job in a VPC needs both; set both")
        if not 1 <= self.max_seconds <= _MOST_SECONDS:
            raise InvalidValueError(
                f"--max-seconds: must be between 1 and {_MOST_SECONDS}, got {self.max_seconds}; change it"
            )
        if len(self.tags) > _MOST_TAGS:
            raise InvalidValueError(f"--tag: must be at most {_MOST_TAGS}, got {len(self.tags)}; remove some")

    @cached_property
    def all_tags(self) -> list[dict[str, str]]:
        """The tags of the request; the first one says which program started the job."""
        return [{"Key": key, "Value": value} for key, value in dict((_OWN_TAG, *self.tags)).items()]

    def url(self, key: str) -> str:
        """Return the S3 URI of a key below the prefix."""
        return f"s3://{self.bucket}/{self.prefix}{key}"


def account_of_role(role: str) -> str | None:
    """Return the account of a role's ARN."""
    match = _ROLE.fullmatch(role)
    return match[1] if match else None
