"""Where a job runs and what it may use: role, bucket, keys, network, time limit and tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import pair_argument
from constructs_triton_tools.declared_fields import check_limits, shows_options
from constructs_triton_tools.declared_options import Option

DEFAULT_PREFIX = "constructs-triton/compile/"
# botocore sagemaker service model: RoleArn, ProcessingMaxRuntimeInSeconds, KmsKeyId, SecurityGroupId,
# SubnetId, Tag.
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/?[\w+=,.@/-]+")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SECONDS = RangeLimit(1, 777_600)
_MOST_TAGS = 49
_OWN_TAG = ("constructs-triton", "compile")


# fmt: off
@shows_options
@dataclass(frozen=True)
class JobSettings:
    """The settings of a job: its Region, its role, the bucket of its inputs and results, and its options."""

    region: str
    role: str
    bucket: str
    prefix: Annotated[str, Option("--prefix", "PREFIX", "beginning of the keys")] = DEFAULT_PREFIX
    max_seconds: Annotated[int, Option(
        "--max-seconds", "N", "SageMaker stops the job after this time", limit=_SECONDS)] = 7200
    volume_gb: Annotated[int, Option(
        "--volume-size", "GB", "disk of the job; less where the instance has less local NVMe",
        limit=RangeLimit(1, None))] = 30
    kms_key: Annotated[str | None, Option("--kms-key", "ARN", "KMS key of the results")] = None
    subnets: Annotated[Sequence[str], Option("--subnet", "ID", "subnet of the job")] = ()
    security_groups: Annotated[Sequence[str], Option(
        "--security-group", "ID", "security group of the job")] = ()
    is_isolated: Annotated[bool, Option(
        "--no-network-isolation", "", "isolate the job from the network, which it does not need")] = True
    tags: Annotated[Sequence[tuple[str, str]], Option(
        "--tag", "KEY=VALUE", "tag of the job", read=pair_argument("KEY=VALUE", "team=search"))] = ()
# fmt: on

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
        check_limits(self)
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
