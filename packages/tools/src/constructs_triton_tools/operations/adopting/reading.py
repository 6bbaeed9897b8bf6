"""The calls that ``adopt`` may make, all of which only read, and their answers with secrets masked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws.aws_reader import permission_of
from constructs_triton_tools.aws.noting_reader import NotingReader
from constructs_triton_tools.operations.adopting.python_text import Answer, free_name
from constructs_triton_tools.operations.adopting.secrets import masked

if TYPE_CHECKING:
    import boto3

_PERMISSIONS = {
    "application-autoscaling": "DescribeScalableTargets DescribeScalingPolicies DescribeScheduledActions",
    "cloudwatch": "DescribeAlarms",
    "ec2": "DescribeSubnets",
    "ecr": "DescribeImages",
    "iam": "GetPolicy GetPolicyVersion GetRole GetRolePolicy ListAttachedRolePolicies ListRolePolicies",
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
_ACTIONS = [f"{service}:{name}" for service, names in _PERMISSIONS.items() for name in names.split()]


def reading_policy() -> dict[str, Any]:
    """Return the IAM policy with the permissions of all calls."""
    statement = {"Sid": "ReadEndpoints", "Effect": "Allow", "Action": _ACTIONS, "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}


class RecordingReader(NotingReader):
    """Reads from AWS, and keeps each answer in ``answers`` by a name for a file, with secrets masked."""

    most_pages = 100

    def __init__(self, session: boto3.Session) -> None:
        super().__init__(session)
        self.answers: dict[str, Any] = {}

    def require(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation, and keep it."""
        permission = permission_of(service, "".join(word.capitalize() for word in operation.split("_")))
        if permission not in _ACTIONS:
            raise AssertionError(f"{permission} is not in the policy that `adopt --policy` prints")
        answer = super().require(service, operation, **request)
        answer.pop("ResponseMetadata", None)
        if service != "s3":  # the content of archives is not an answer to keep
            self.answers[self._name(operation, request)] = masked(answer)
        return answer

    def keep_only(self, operation: str, member: str, found: Sequence[Answer]) -> None:
        """Replace the answers of an operation that lists resources of others too."""
        for each in [name for name in self.answers if name.partition("-")[0] == operation]:
            del self.answers[each]
        self.answers[operation] = masked({member: found})

    def _name(self, operation: str, request: Mapping[str, Any]) -> str:
        """Return a file name of the operation and what it was asked about, which is new."""
        values = [
            each for name, each in request.items() if isinstance(each, str) and name not in _NOT_SUBJECTS
        ]
        about = "-".join(re.findall(r"[A-Za-z0-9]+", "".join(values[:1])))[-80:]
        return free_name(f"{operation}-{about}".strip("-"), self.answers, separator="-")
