"""What the roles of the base templates do, by the AWS documentation of each operation.

Sources: SageMaker developer guide, "SageMaker roles" (CreateModel: S3, ECR, the network interfaces
of a VPC) and "Invoke an asynchronous endpoint"; API reference, CreateEndpointConfig (``KmsKeyId``);
Amazon S3 user guide (a writer under a key needs kms:Decrypt and kms:GenerateDataKey); Amazon SNS
developer guide, "Key management".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from shared_endpoint import Resources

from . import bases
from .mutant import DATA, PLATFORM, READERS


@dataclass(frozen=True)
class Access:
    """One thing that a role of a base does.

    Args:
        base: The resources of the base template.
        what: What is read, written or called.
        role: Logical ID of the role.
        action: The action that it needs.
        resource: The ARN that the action is for, as in a template.
        granted_in: Logical ID of the policy that allows it.
        policy: Logical ID of the policy of the bucket, the key or the topic; empty if there is
            none.
        codes: The problems that fit.
    """

    base: Callable[[], Resources]
    what: str
    role: str
    action: str
    resource: Any
    granted_in: str = "Policy"
    policy: str = ""
    codes: tuple[str, ...] = DATA

    @property
    def name(self) -> str:
        """What distinguishes the access from all others."""
        return f"{self.base.__name__}: {self.what}, {self.role} {self.action}"


def accesses() -> Iterator[Access]:
    """Every access of the base templates."""
    yield from _starting()
    yield from _realtime()
    yield from _queue()


def _starting() -> Iterator[Access]:
    model = f"arn:aws:s3:::{PLATFORM}/models/one.tar.gz"
    read = Access(
        bases.local,
        "model data",
        "Role",
        "s3:GetObject",
        model,
        "Policy",
        "PlatformPolicy",
        READERS,
    )
    yield read
    yield replace(read, base=bases.many, what="archive of a multi-model endpoint")
    listed = f"arn:aws:s3:::{PLATFORM}"
    yield replace(
        read, base=bases.many, what="list of archives", action="s3:ListBucket", resource=listed
    )
    for operation in ("BatchGetImage", "GetDownloadUrlForLayer", "BatchCheckLayerAvailability"):
        yield Access(bases.local, "image", "Role", f"ecr:{operation}", "*", "Role", codes=READERS)
    yield Access(
        bases.local, "image", "Role", "ecr:GetAuthorizationToken", "*", "Role", codes=READERS
    )
    for operation in (
        "CreateNetworkInterface",
        "CreateNetworkInterfacePermission",
        "DescribeSubnets",
    ):
        yield Access(
            bases.network,
            "network interfaces",
            "Role",
            f"ec2:{operation}",
            "*",
            "Managed",
            codes=READERS,
        )
    yield Access(
        bases.local, "rollback alarms", "Role", "cloudwatch:DescribeAlarms", "*", "Managed"
    )


def _realtime() -> Iterator[Access]:
    captured, dumps = (bases.inside("Captured", each) for each in ("capture/", "dumps/"))
    write = Access(
        bases.local, "captured data", "Role", "s3:PutObject", captured, "Policy", "CapturedPolicy"
    )
    yield write
    yield replace(write, what="core dumps", resource=dumps)
    read = replace(write, role="Reader", granted_in="ReaderPolicy", action="s3:GetObject")
    yield read
    key = replace(
        write, what="key of captured data", resource=bases.arn("DataKey"), policy="DataKey"
    )
    yield replace(key, action="kms:GenerateDataKey")
    yield replace(key, action="kms:Decrypt")
    yield replace(key, role="Reader", granted_in="ReaderPolicy", action="kms:Decrypt")
    volume = replace(
        key, what="key of volumes", resource=bases.arn("VolumeKey"), policy="VolumeKey"
    )
    yield replace(volume, action="kms:CreateGrant")


def _queue() -> Iterator[Access]:
    read = Access(
        bases.queue,
        "requests",
        "Role",
        "s3:GetObject",
        bases.inside("Requests", "in/"),
        "Policy",
        "RequestsPolicy",
    )
    yield read
    out, failures = (bases.inside("Responses", each) for each in ("out/", "failures/"))
    write = replace(
        read, what="responses", action="s3:PutObject", resource=out, policy="ResponsesPolicy"
    )
    yield write
    yield replace(write, what="failures", resource=failures)
    called = replace(read, role="Caller", granted_in="CallerPolicy", action="s3:PutObject")
    yield called
    yield replace(
        called, what="responses", action="s3:GetObject", resource=out, policy="ResponsesPolicy"
    )
    key = replace(read, what="key of the queue", resource=bases.arn("QueueKey"), policy="QueueKey")
    for role, granted_in in (("Role", "Policy"), ("Caller", "CallerPolicy")):
        for action in ("kms:Decrypt", "kms:GenerateDataKey"):
            yield replace(key, role=role, granted_in=granted_in, action=action)
    for topic in ("Succeeded", "Failed"):
        publish = replace(
            read, what=f"topic {topic}", action="sns:Publish", resource=bases.ref(topic)
        )
        yield replace(publish, policy="TopicPolicy")
    topics = replace(
        key, what="key of the topics", resource=bases.arn("TopicKey"), policy="TopicKey"
    )
    for action in ("kms:Decrypt", "kms:GenerateDataKey"):
        yield replace(topics, action=action)
