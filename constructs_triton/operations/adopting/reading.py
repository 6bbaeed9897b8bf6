"""The calls that ``adopt`` may make, all of which only read, and their answers with secrets masked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from constructs_triton.operations.adopting.secrets import masked
from constructs_triton.operations.aws_reader import AwsReader

if TYPE_CHECKING:
    import boto3

__all__ = ["RecordingReader", "reading_policy"]

_STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "ReadEndpoint": (
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeInferenceComponent",
        "sagemaker:DescribeModel",
        "sagemaker:ListInferenceComponents",
        "sagemaker:ListTags",
    ),
    "ReadScalingAndAlarms": (
        "application-autoscaling:DescribeScalableTargets",
        "application-autoscaling:DescribeScalingPolicies",
        "application-autoscaling:DescribeScheduledActions",
        "cloudwatch:DescribeAlarms",
        "logs:DescribeLogGroups",
    ),
    "ReadRole": (
        "iam:GetPolicy",
        "iam:GetPolicyVersion",
        "iam:GetRole",
        "iam:GetRolePolicy",
        "iam:ListAttachedRolePolicies",
        "iam:ListRolePolicies",
    ),
    "ReadNetworkAndImage": ("ec2:DescribeSubnets", "ecr:DescribeImages"),
    # kms:Decrypt is not a call of its own: S3 asks for it when an archive is encrypted with a KMS key.
    "ReadModels": ("kms:Decrypt", "s3:GetObject", "s3:ListBucket"),
}
#: Operations whose permission has another name.
_PERMISSIONS = {"s3:HeadObject": "s3:GetObject", "s3:ListObjectsV2": "s3:ListBucket"}


def reading_policy() -> dict[str, Any]:
    """Return the IAM policy with the permissions of all calls."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": "*"}
            for sid, actions in _STATEMENTS.items()
        ],
    }


class RecordingReader(AwsReader):
    """Reads from AWS, and keeps each answer in ``answers`` by a name for a file, with secrets masked."""

    def __init__(self, session: boto3.Session) -> None:
        super().__init__(session)
        self.answers: dict[str, Any] = {}
        self.permissions: set[str] = set()

    def require(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation, and keep it; raises botocore's ``ClientError``."""
        permission = _permission(service, operation)
        if not any(permission in actions for actions in _STATEMENTS.values()):
            raise AssertionError(f"{permission} is not in the policy that `adopt --policy` prints")
        self.permissions.add(permission)
        answer = super().require(service, operation, **request)
        if service != "s3":  # the content of archives is not an answer to keep
            kept = {name: part for name, part in answer.items() if name != "ResponseMetadata"}
            self.answers[self._name(operation, request)] = masked(kept)
        return answer

    def read_all(self, service: str, operation: str, member: str, **request: Any) -> list[dict[str, Any]]:
        """Return the members of all pages; none if they cannot be read, which is noted."""
        found: list[dict[str, Any]] = []
        for _ in range(100):
            answer = self.read(service, operation, **request)
            found += answer.get(member, [])
            for sent, received in (
                ("NextToken", "NextToken"),
                ("Marker", "Marker"),
                ("nextToken", "nextToken"),
            ):
                if answer.get(received):
                    request[sent] = answer[received]
                    break
            else:
                return found
        self.not_read.append(f"{service}:{operation}: has more pages than are read")
        return found

    def keep_only(self, operation: str, member: str, found: Sequence[Mapping[str, Any]]) -> None:
        """Replace the answers of an operation that lists resources of others too."""
        for each in [name for name in self.answers if name.partition("-")[0] == operation]:
            del self.answers[each]
        self.answers[operation] = masked({member: found})

    def _name(self, operation: str, request: Mapping[str, Any]) -> str:
        """Return a file name of the operation and what it was asked about, which is new."""
        about = "-".join(re.findall(r"[A-Za-z0-9]+", _subject(request)))[-80:].strip("-")
        name = f"{operation}-{about}" if about else operation
        number = 2
        chosen = name
        while chosen in self.answers:
            chosen, number = f"{name}-{number}", number + 1
        return chosen


def _permission(service: str, operation: str) -> str:
    """Return the IAM action of a boto3 method, such as ``sagemaker:DescribeModel``."""
    words = "".join(word.capitalize() for word in operation.split("_"))
    action = f"{service}:{words}"
    return _PERMISSIONS.get(action, action)


def _subject(request: Mapping[str, Any]) -> str:
    for name, value in request.items():
        if isinstance(value, str) and name not in ("ServiceNamespace", "NextToken", "Marker", "VersionId"):
            return value
    return ""
