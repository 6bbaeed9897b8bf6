"""The exceptions of the AWS calls that this project or its templates make, by botocore's models.

    python -m failure_texts.aws_exceptions

Prints those for which the catalogue has only the family of all refused calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from botocore.loaders import Loader

from constructs_triton_core.facts.failures import Rank
from constructs_triton_tools.operations.diagnosis import Message, recognize

#: What the commands, the functions of a deployment and the handlers of the resources call.
OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "sagemaker": (
        "CreateModel",
        "CreateEndpointConfig",
        "CreateEndpoint",
        "UpdateEndpoint",
        "UpdateEndpointWeightsAndCapacities",
        "DeleteEndpoint",
        "CreateInferenceComponent",
        "UpdateInferenceComponent",
        "DeleteInferenceComponent",
    ),
    "sagemaker-runtime": (
        "InvokeEndpoint",
        "InvokeEndpointAsync",
        "InvokeEndpointWithResponseStream",
    ),
    "application-autoscaling": (
        "RegisterScalableTarget",
        "DeregisterScalableTarget",
        "PutScalingPolicy",
        "DeleteScalingPolicy",
        "PutScheduledAction",
        "DescribeScalingActivities",
    ),
    "ecr": ("BatchGetImage", "DescribeImages", "GetDownloadUrlForLayer", "PutImage"),
    "s3": ("GetObject", "PutObject", "HeadObject", "ListObjectsV2", "CreateBucket"),
    "kms": ("Decrypt", "GenerateDataKey", "CreateGrant", "CreateKey", "PutKeyPolicy"),
    "iam": ("CreateRole", "PutRolePolicy", "AttachRolePolicy", "DeleteRole"),
    "cloudformation": ("CreateChangeSet", "ExecuteChangeSet", "DescribeStacks", "DeleteStack"),
    "lambda": ("CreateFunction", "UpdateFunctionCode", "Invoke"),
    "service-quotas": ("ListServiceQuotas", "GetServiceQuota"),
}


class AwsException(NamedTuple):
    """An exception that an operation may raise, and the entry that explains it.

    ``entry`` is empty if no entry names a cause.
    """

    service: str
    operation: str
    code: str
    entry: str


def aws_exceptions() -> Iterator[AwsException]:
    """Yield the exceptions of each operation in the order of botocore's model."""
    loader = Loader()
    for service, operations in OPERATIONS.items():
        model = loader.load_service_model(service, "service-2")
        for operation in operations:
            for error in model["operations"][operation].get("errors", ()):
                shape = model["shapes"][error["shape"]]
                code = shape.get("error", {}).get("code", error["shape"])
                yield AwsException(service, operation, code, entry_of(code, operation))


def entry_of(code: str, operation: str) -> str:
    """Return the entry with a cause for an exception whose message says nothing more."""
    text = f"An error occurred ({code}) when calling the {operation} operation: "
    found = recognize(Message(text, "botocore"))
    return "" if found is None or found.rank is Rank.WRAPPER else found.id


if __name__ == "__main__":
    for exception in aws_exceptions():
        if not exception.entry:
            print(f"{exception.service} {exception.operation}: {exception.code}")
