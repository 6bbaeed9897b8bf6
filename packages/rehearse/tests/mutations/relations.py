"""Each reference between two resources of the base templates removed, and each resource that
connects others.

The verdict follows from the place of the reference alone: :data:`RULES` has
a rule for each place, with its source.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from shared_endpoint import Resources

from cdk_rehearse.services.resource_schemas import resource_schema

from . import bases
from .mutant import DATA, MAY_FAIL, READERS, UPDATE_FAILS, Mutant, Rule, template
from .refusals import REFUSED
from .removal import Path, removable, remove, without

_REQUIRED = Rule("wrong", "the schema of the type requires the property", REFUSED)
_ORDER = Rule("harmless", "CloudFormation changes no resource when only DependsOn changes")
_OFF = Rule("harmless", "a feature that the template no longer asks for is switched off")
_ROUTES = Rule("not simulated", "routes: whether instances in a VPC reach S3")
_CLOCK = Rule("not simulated", "alarms: a simulated account has no clock and no metrics")
_WITHOUT_ROLE = Rule(
    "wrong",
    "SageMaker API reference: the role reads the model and pulls the image",
    (MAY_FAIL, *READERS),
)
_LOST = Rule(
    "wrong", "no policy allows the action any more", ("rehearse-previous-key-removed", *DATA)
)
_EC2 = Rule("wrong", "EC2 API reference: one target is required", REFUSED)
RULES: Mapping[tuple[str, str], Rule] = {
    ("AWS::EC2::VPCEndpoint", "RouteTableIds"): _ROUTES,
    ("AWS::EC2::VPCGatewayAttachment", "InternetGatewayId"): _EC2,
    ("AWS::EC2::Route", "GatewayId"): _EC2,
    ("AWS::EC2::SecurityGroup", "VpcId"): Rule(
        "wrong",
        "SageMaker API reference, VpcConfig: the security groups are those of the subnets' VPC",
        READERS,
    ),
    ("AWS::IAM::Role", "PermissionsBoundary"): Rule(
        "harmless", "a boundary allows nothing, it limits"
    ),
    ("AWS::IAM::Policy", "Roles"): _LOST,
    ("AWS::IAM::ManagedPolicy", "Roles"): _LOST,
    ("AWS::IAM::Policy", "PolicyDocument.Statement"): _LOST,
    ("AWS::S3::Bucket", "KMSMasterKeyID"): Rule(
        "harmless",
        "S3 uses the AWS managed key, which the account's roles may use; old data keeps its key",
    ),
    ("AWS::S3::BucketPolicy", "PolicyDocument.Statement"): Rule("harmless", "a Deny is removed"),
    ("AWS::Logs::LogGroup", "KmsKeyId"): _OFF,
    ("AWS::SageMaker::Model", "ExecutionRoleArn"): _WITHOUT_ROLE,
    ("AWS::SageMaker::Model", "VpcConfig.Subnets"): Rule("harmless", "one subnet is left"),
    ("AWS::SageMaker::Model", "VpcConfig"): _OFF,
    ("AWS::SageMaker::EndpointConfig", "ModelName"): Rule(
        "wrong",
        "SageMaker API reference: a variant without a model needs ExecutionRoleArn",
        REFUSED,
    ),
    ("AWS::SageMaker::EndpointConfig", "ExecutionRoleArn"): Rule(
        "wrong", "SageMaker API reference: required for inference components", REFUSED
    ),
    ("AWS::SageMaker::EndpointConfig", "CoreDumpConfig"): _OFF,
    ("AWS::SageMaker::EndpointConfig", "DataCaptureConfig"): _OFF,
    ("AWS::SageMaker::EndpointConfig", "KmsKeyId"): _OFF,
    ("AWS::SageMaker::EndpointConfig", "S3OutputPath"): Rule(
        "not simulated", "no source says where responses go without S3OutputPath"
    ),
    ("AWS::SageMaker::EndpointConfig", "S3FailurePath"): _OFF,
    ("AWS::SageMaker::EndpointConfig", "SuccessTopic"): _OFF,
    ("AWS::SageMaker::EndpointConfig", "ErrorTopic"): _OFF,
    ("AWS::SageMaker::Endpoint", "AutoRollbackConfiguration"): _OFF,
    ("AWS::SageMaker::InferenceComponent", "ModelName"): Rule(
        "wrong",
        "SageMaker API reference: a component has a model, a container or a base component",
        REFUSED,
    ),
    ("AWS::ApplicationAutoScaling::ScalingPolicy", "ScalingTargetId"): Rule(
        "wrong",
        "CloudFormation user guide: ScalingTargetId, or ResourceId with dimension and namespace",
        REFUSED,
    ),
    ("AWS::CloudWatch::Alarm", "AlarmActions"): _OFF,
    ("AWS::CloudWatch::Alarm", "Dimensions"): _CLOCK,
    ("AWS::SNS::Topic", "KmsMasterKeyId"): _OFF,
    ("AWS::SNS::TopicPolicy", "Topics"): _OFF,
}
"""By type and the end of what is removed, a path without numbers."""
_WAKING = {("components", "Alarm", "AlarmActions"): _CLOCK}
"""The alarm that starts the first copy: without it, calls of a component at zero copies fail."""


def removed_references() -> Iterator[Mutant]:
    """Each reference of each base removed."""
    for base in (bases.network, bases.local, bases.queue, bases.many, bases.components):
        old = base()
        for name, declared in old.items():
            for removed in removable(declared, old):
                new = copy.deepcopy(old)
                remove(new[name]["Properties"], removed)
                rule = _rule(base.__name__, name, declared, removed)
                place = f"{base.__name__}: {name}.{'.'.join(map(str, removed))}"
                yield _mutant(place, old, new, rule)
            for other in declared.get("DependsOn", ()):
                new = copy.deepcopy(old)
                new[name]["DependsOn"].remove(other)
                yield _mutant(f"{base.__name__}: {name} DependsOn {other}", old, new, _ORDER)


def _mutant(name: str, old: Resources, new: Resources, rule: Rule) -> Mutant:
    kind = {"wrong": "relation", "harmless": "relation without effect"}.get(
        rule.verdict, "relation: not simulated"
    )
    stacks = {"S": template(old)}, {"S": template(new)}
    return Mutant(
        f"{kind}: reference removed", name, *stacks, rule.verdict, rule.source, rule.codes
    )


def _rule(base: str, name: str, declared: Any, removed: Path) -> Rule:
    words = [each for each in removed if isinstance(each, str)]
    if (
        removed[0] in resource_schema(declared["Type"]).body.get("required", ())
        and len(removed) == 1
    ):
        return _REQUIRED
    if (base, name, words[-1]) in _WAKING:
        return _WAKING[base, name, words[-1]]
    for start in range(len(words)):
        found = RULES.get((declared["Type"], ".".join(words[start:])))
        if found is not None:
            return found
    raise KeyError(f"no rule for {declared['Type']} {removed}")


_CONNECTIONS: Mapping[str, Mapping[str, Rule]] = {
    "network": {
        "AssociationA": _ROUTES,
        "AssociationB": _ROUTES,
        "S3": _ROUTES,
        "Route": Rule(
            "harmless", "S3 is reached through the gateway endpoint, and SageMaker pulls the image"
        ),
        "SubnetB": Rule("harmless", "one subnet is left"),
        "Managed": _LOST,
    },
    "local": {
        "Boundary": Rule("harmless", "a boundary allows nothing, it limits"),
        "Policy": _LOST,
        "Managed": _LOST,
        "ReaderPolicy": _LOST,
        "CapturedPolicy": Rule("harmless", "a Deny is removed"),
        "PlatformPolicy": Rule("harmless", "a Deny is removed"),
        "DataKey": Rule("wrong", "captured data under a deleted key cannot be read", _LOST.codes),
        "LogKey": Rule("wrong", "log events under a deleted key cannot be read", _LOST.codes),
        "Scaling": Rule(
            "wrong",
            "without a policy, a scalable target changes the number of instances no more",
            ("rehearse-scaling-cannot-act",),
        ),
        "Alarm": _OFF,
        "Latency": _OFF,
        "Notices": _OFF,
        "Dashboard": _OFF,
        "Logs": Rule(
            "wrong", "the log events are deleted", ("rehearse-data-lost", "rehearse-data-replaced")
        ),
    },
    "queue": {
        "Policy": _LOST,
        "CallerPolicy": _LOST,
        "QueueKey": Rule("wrong", "responses under a deleted key cannot be read", _LOST.codes),
        "RequestsPolicy": Rule("harmless", "a Deny is removed"),
        "TopicPolicy": _OFF,
        "Failed": Rule(
            "wrong",
            "CloudFormation updates the policy before the endpoint, "
            "whose old version still publishes",
            DATA,
        ),
    },
    "components": {"Policy": _LOST, "Alarm": _CLOCK, "Wake": _CLOCK},
}


def removed_resources() -> Iterator[Mutant]:
    """Resources that connect others, removed with every reference to them."""
    for base in (bases.network, bases.local, bases.queue, bases.components):
        for name, rule in _CONNECTIONS[base.__name__].items():
            old = base()
            new = without(old, name)
            each = _mutant(f"{base.__name__}: {name}", old, new, rule)
            yield Mutant(**{**vars(each), "kind": each.kind.replace("reference", "resource")})


def orders() -> Iterator[Mutant]:
    """First deployments without a DependsOn: CloudFormation may create the
    two in the other order.
    """
    for base, name, other in (
        (bases.queue, "Model", "Policy"),
        (bases.many, "Model", "Policy"),
        (bases.components, "Model", "Policy"),
        (bases.local, "Target", "Endpoint"),
        (bases.network, "Route", "Attachment"),
        (bases.local, "Model", "Policy"),
    ):
        new = base()
        new[name]["DependsOn"].remove(other)
        source = (
            "CloudFormation user guide, DependsOn: resources "
            "without a dependency are created in parallel"
        )
        place = f"{base.__name__}: {name} DependsOn {other}"
        codes = (UPDATE_FAILS, *READERS)
        yield Mutant(
            "relation: order of a first deployment",
            place,
            None,
            {"S": template(new)},
            "wrong",
            source,
            codes,
            2,
        )
    new = bases.components()
    new["Config"]["DependsOn"].remove("Policy")
    source = "the component is created after its model, and the model after the policy"
    kind, place = (
        "relation without effect: order of a first deployment",
        "components: Config DependsOn Policy",
    )
    yield Mutant(kind, place, None, {"S": template(new)}, "harmless", source, (), 2)


def relations() -> Iterator[Mutant]:
    """All edits of this module."""
    yield from removed_references()
    yield from removed_resources()
    yield from orders()
