"""Why this library's resources have the findings of cdk-nag that no property removes."""

from __future__ import annotations

import re

#: Rules with their reasons. Rules without the prefix of a pack exist in several packs.
Reasons = dict[str, str]

_READERS = (
    "the bucket contains models only, which one deploy-time function writes and the endpoints' roles read; "
    "pass bucket= to use a bucket with access logs"
)
BUCKET: Reasons = {
    "AwsSolutions-S1": _READERS,
    "S3BucketLoggingEnabled": _READERS,
    "S3BucketReplicationEnabled": "a deployment to another Region places the models there",
}
FUNCTION: Reasons = {
    "LambdaDLQ": "only CloudFormation calls the function, and reports its failures",
}
INLINE_POLICY: Reasons = {
    "IAMNoInlinePolicy": "the policy belongs to one role of the library and is deleted with it",
}
_CIDR = "port 443 is open to the CIDR block of the VPC only, which is a token at synth"
VPC_ENDPOINT: Reasons = {
    "AwsSolutions-EC23": _CIDR,
    "EC2RestrictedCommonPorts": _CIDR,
    "EC2RestrictedSSH": _CIDR,
}

_ONE_PREFIX = "all objects below one prefix of one bucket, whose names change with the models or requests"
_NO_TARGET_NAME = "the ARN of a scalable target does not contain the endpoint; conditions allow variants only"
_NO_RESOURCE = "these actions support no resource"
# By the id of the statement.
_WILDCARDS = {
    "AdoptEndpoint": "the name of the configuration that the endpoint returns to is known only in AWS",
    "AttachToVpc": "network interfaces have no ARN before they are created, and the Describe actions none",
    "CopyTags": _ONE_PREFIX,
    "Deregister": _NO_TARGET_NAME,
    "EncryptFleet": "the key of the previous configuration is known only in AWS; a condition allows "
    "SageMaker only",
    "ListModel": _ONE_PREFIX,
    "LoadModel": _ONE_PREFIX,
    "LoadModels": _ONE_PREFIX,
    "LogInToRegistry": f"{_NO_RESOURCE} (ecr:GetAuthorizationToken)",
    "LookAtEndpoint": "the guard runs before the endpoint exists, so its name is not known",
    "LookAtPrevious": "the names of the previous configuration and its models are known only in AWS",
    "LookAtScaling": _NO_RESOURCE,
    "PlaceArchives": _ONE_PREFIX,
    "PruneArchives": _ONE_PREFIX,
    "PublishMetrics": "cloudwatch:PutMetricData supports no resource; a condition allows SageMaker's "
    "namespaces only",
    "ReadAlarms": "DescribeAlarms needs all resources for composite alarms",
    "ReadArchives": "the exact keys of the archives do not fit into the role's policies",
    "ReadAsyncInput": _ONE_PREFIX,
    "Register": _NO_TARGET_NAME,
    "RememberScaling": "one folder of parameters, with the id of the stack",
    "RemoveArchives": _ONE_PREFIX,
    "TrackMetrics": "Application Auto Scaling names the alarms of endpoints",
    "WriteAsyncFailure": _ONE_PREFIX,
    "WriteAsyncOutput": _ONE_PREFIX,
    "WriteCoreDump": _ONE_PREFIX,
    "WriteDataCapture": _ONE_PREFIX,
    "WriteLogs": "SageMaker names the log groups after endpoints and components",
}
# Statements of the same kind in one role have a number, and parts of a long one another.
_NUMBER = re.compile(r"(\d+)?(Part\d+)?$")


def wildcard_reason(sid: str) -> str | None:
    """Return why a statement of this id has wildcards; ``None`` for one that the library does not write."""
    return _WILDCARDS.get(_NUMBER.sub("", sid))
