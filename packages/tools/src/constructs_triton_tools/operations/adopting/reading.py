"""The calls that ``adopt`` may make, all of which only read,
and their answers with secrets masked.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsError, permission_of
from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.secrets import masked
from constructs_triton_tools.aws.noting_reader import NotingReader
from constructs_triton_tools.operations.adopting.python_text import Answer, free_name
from triton_model_check.untrusted.budget import UnpackBudget
from triton_model_check.untrusted.tar_reader import UnpackLimits

if TYPE_CHECKING:
    import boto3

_PERMISSIONS = {
    "application-autoscaling": (
        "DescribeScalableTargets DescribeScalingPolicies DescribeScheduledActions"
    ),
    "cloudwatch": "DescribeAlarms",
    "ec2": "DescribeSubnets",
    "ecr": "DescribeImages",
    "iam": (
        "GetPolicy GetPolicyVersion GetRole GetRolePolicy ListAttachedRolePolicies ListRolePolicies"
    ),
    # Not a call of its own: S3 asks for it when an archive is encrypted with a KMS key.
    "kms": "Decrypt",
    "logs": "DescribeLogGroups",
    "s3": "GetObject ListBucket",
    "sagemaker": (
        "DescribeEndpoint DescribeEndpointConfig DescribeInferenceComponent DescribeModel "
        "ListInferenceComponents ListTags"
    ),
}
#: Members of requests that name no resource.
_NOT_SUBJECTS = ("ServiceNamespace", "NextToken", "nextToken", "Marker", "VersionId")
_ACTIONS = [
    f"{service}:{name}" for service, names in _PERMISSIONS.items() for name in names.split()
]
_CHUNK_BYTES = 1 << 20
_MOST_TIMES = 10
#: Archives under one prefix that are checked.
_MOST_OBJECTS = 1000
_MOST_MEMBERS = 1_000_000
_HINT = "add --max-download with more MiB"


def reading_policy() -> dict[str, Any]:
    """Return the IAM policy with the permissions of all calls."""
    statement = {"Sid": "ReadEndpoints", "Effect": "Allow", "Action": _ACTIONS, "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}


class RecordingReader(NotingReader):
    """Reads from AWS, and keeps each answer in ``answers`` by a name for a file,
    with secrets masked.
    """

    most_pages = 100

    def __init__(self, session: boto3.Session) -> None:
        super().__init__(session)
        self.answers: dict[str, Any] = {}

    def require(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation, and keep it."""
        permission = permission_of(
            service, "".join(word.capitalize() for word in operation.split("_"))
        )
        if permission not in _ACTIONS:
            raise AssertionError(f"{permission} is not in the policy that `adopt --policy` prints")
        answer = super().require(service, operation, **request)
        answer.pop("ResponseMetadata", None)
        if service != "s3":  # the content of archives is not an answer to keep
            self.answers[self._name(operation, request)] = masked(answer)
        return answer

    def keep_only(self, operation: str, member: str, found: Sequence[Answer]) -> None:
        """Replace the answers of an operation that lists resources of others too."""
        for name in list(self.answers):
            if name.partition("-")[0] == operation:
                del self.answers[name]
        self.answers[operation] = masked({member: found})

    def _name(self, operation: str, request: Mapping[str, Any]) -> str:
        """Return a file name of the operation and what it was asked about, which is new."""
        values = [
            value
            for name, value in request.items()
            if isinstance(value, str) and name not in _NOT_SUBJECTS
        ]
        about = "-".join(re.findall(r"[A-Za-z0-9]+", "".join(values[:1])))[-80:]
        return free_name(f"{operation}-{about}".strip("-"), self.answers, separator="-")


class Downloads:
    """Objects that were downloaded."""

    def __init__(self, reader: RecordingReader, directory: Path, max_bytes: int) -> None:
        self._reader = reader
        self.directory = directory
        self._left = self._max_bytes = max_bytes
        # Weights compress by less than ten times.
        self._max_unpacked = max(1 << 30, _MOST_TIMES * max_bytes)
        self.budget = UnpackBudget(self._max_unpacked, _MOST_MEMBERS, _HINT)

    @property
    def limits(self) -> UnpackLimits:
        """What an archive may unpack to, as usual and together with the others."""
        return replace(UnpackLimits.from_environment(), budget=self.budget)

    def list(self, bucket: str, prefix: str) -> list[dict[str, Any]]:
        """Return up to a thousand objects under a prefix."""
        answer = self._reader.read(
            "s3", "list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=_MOST_OBJECTS
        )
        if answer.get("IsTruncated"):
            self._reader.not_read.append(
                f"s3://{bucket}/{prefix}: only the first {_MOST_OBJECTS} objects were read"
            )
        found: list[dict[str, Any]] = answer.get("Contents", [])
        return found

    def head(self, bucket: str, key: str) -> dict[str, Any] | None:
        """Return the properties of an object; ``None`` if the credentials may not read them."""
        return self._read("head_object", bucket, key)

    def fetch(self, bucket: str, key: str, size: int) -> Path | None:
        """Download an object into a folder of its own;
        ``None`` if it is too large or may not be read.
        """
        if self.budget.is_spent:
            self.skip(bucket, key)
            return None
        if size > self._left:
            self._reader.not_read.append(
                f"s3://{bucket}/{key}: was not downloaded and checked, since it has {size:,} bytes "
                f"and {self._max_bytes:,} may be downloaded; {_HINT}"
            )
            return None
        answer = self._read("get_object", bucket, key)
        if answer is None:
            return None
        self._left -= size
        path = Path(tempfile.mkdtemp(dir=self.directory)) / "archive.tar.gz"
        with path.open("wb") as file:
            # No more than S3 announced, whatever it sends.
            for chunk in answer["Body"].iter_chunks(_CHUNK_BYTES):
                file.write(chunk)
                if file.tell() > size:
                    break
        return path

    def skip(self, bucket: str, key: str) -> None:
        """Note that an archive was not checked, since the archives before it unpack to too much."""
        self._reader.not_read.append(
            f"s3://{bucket}/{key}: was not checked, since the archives together unpack to more "
            f"than {self._max_unpacked:,} bytes or {_MOST_MEMBERS:,} members; {_HINT}"
        )

    def _read(self, operation: str, bucket: str, key: str) -> dict[str, Any] | None:
        try:
            return self._reader.require("s3", operation, Bucket=bucket, Key=key)
        except AwsError as error:
            if not error.code or error.permission == "s3:GetObject":
                self._reader.note(error)
                return None
            raise ArchiveError(
                f"s3://{bucket}/{key}: cannot be read ({error.reason}), and new instances "
                "load it from there; upload the archive again, or restore its KMS key"
            ) from None
