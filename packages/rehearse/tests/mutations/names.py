"""Edits of names: each type with a name, declared under another logical ID or in another stack."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from cdk_rehearse.providers.provider import Provider
from cdk_rehearse.services.resource_schemas import resource_schema
from cdk_rehearse.updates.data_types import data_types

from .mutant import COLLISION, Mutant, Rule, template
from .named import BESIDE, SIMULATED, named
from .samples import identifier

_EXISTS = "the new resource is created before the cleanup deletes the old one, so the name is taken"
_FREE = Rule(
    "harmless",
    "the stack that has the name is deployed first and deletes it, so that the name is free",
)
_DATA_LOST = Rule(
    "wrong",
    "AWS lists the type as one that contains data",
    ("rehearse-data-lost", "rehearse-data-replaced"),
)
OPAQUE = (
    "AWS::ApiGateway::DomainName",
    "AWS::Athena::WorkGroup",
    "AWS::Backup::BackupVault",
    "AWS::CodeDeploy::Application",
    "AWS::Config::ConfigRule",
    "AWS::DAX::SubnetGroup",
    "AWS::DynamoDB::GlobalTable",
    "AWS::DynamoDB::Table",
    "AWS::EC2::KeyPair",
    "AWS::ECS::CapacityProvider",
    "AWS::ECS::Cluster",
    "AWS::EKS::Cluster",
    "AWS::ElastiCache::SubnetGroup",
    "AWS::Events::Archive",
    "AWS::Events::Connection",
    "AWS::Events::EventBus",
    "AWS::Glue::Job",
    "AWS::IAM::Group",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::User",
    "AWS::Kinesis::Stream",
    "AWS::KinesisFirehose::DeliveryStream",
    "AWS::Pipes::Pipe",
    "AWS::RDS::DBSubnetGroup",
    "AWS::SSM::Document",
    "AWS::Scheduler::ScheduleGroup",
    "AWS::Synthetics::Canary",
)
"""Types without a provider, whose name is their primary identifier."""
DERIVED = {
    "AWS::ElasticLoadBalancingV2::LoadBalancer": "Name",
    "AWS::ElasticLoadBalancingV2::TargetGroup": "Name",
    "AWS::Events::Rule": "Name",
    "AWS::SQS::Queue": "QueueName",
    "AWS::SecretsManager::Secret": "Name",
}
"""Types whose generated identifier contains the name, which is unique in an account and Region."""
NOT_UNIQUE = {"AWS::Cognito::UserPool": "UserPoolName", "AWS::ApiGateway::RestApi": "Name"}
"""Types of which several resources may have one name."""


def _name_property(kind_of: str) -> str:
    """The property of a simulated type that contains the name;
    empty if a template cannot set it.
    """
    make: Any = Provider.by_type[kind_of]
    provider: Any = make if isinstance(make, type) else make(None)
    name: str = provider.name_property or ""
    return name if name in resource_schema(kind_of).body.get("properties", {}) else ""


def named_types() -> dict[str, str]:
    """The types of the edits with the property that contains the name."""
    simulated = {name: _name_property(name) for name in Provider.by_type if _name_property(name)}
    opaque = {each: identifier(resource_schema(each))[0] for each in OPAQUE}
    return {**simulated, "AWS::KMS::Alias": "AliasName", **opaque, **DERIVED}


def moved_names() -> Iterator[Mutant]:
    """Each named type under another logical ID, and in a stack that is deployed before or after."""
    for kind_of, name_property in named_types().items():
        resource, beside = named(kind_of, name_property)
        old = {"S": template({**beside, "Old": resource})}
        kind, source = "name: another logical ID", f"{_EXISTS} ({kind_of}.{name_property})"
        yield Mutant(
            kind,
            kind_of,
            old,
            {"S": template({**beside, "New": resource})},
            "wrong",
            source,
            (COLLISION,),
        )
        yield from _to_another_stack(kind_of, resource, beside)
    for kind_of, name_property in NOT_UNIQUE.items():
        resource, _ = named(kind_of, name_property)
        old, new = ({"S": template({name: resource})} for name in ("Old", "New"))
        rule = _DATA_LOST if kind_of in data_types() else Rule("harmless", "the name is not unique")
        yield Mutant(_kind(rule, "name: may be used twice"), kind_of, old, new, *rule)


def _kind(rule: Rule, otherwise: str) -> str:
    return "name: data lost" if rule is _DATA_LOST else otherwise


def _to_another_stack(type: str, resource: Any, beside: Any) -> Iterator[Mutant]:
    if type.startswith("AWS::SageMaker::") and type in SIMULATED:
        return  # the endpoint stops serving meanwhile; see the edits of endpoints
    others = copy.deepcopy(beside)
    with_it, without = (
        template({**beside, "Old": resource}),
        template(beside or {"Topic": BESIDE["Topic"]}),
    )
    moved = template({**others, "New": resource})
    kind = "name: another stack"
    before = {"T": moved, "S": without}
    yield Mutant(
        kind, f"{type}, deployed before", {"S": with_it}, before, "wrong", _EXISTS, (COLLISION,)
    )
    after = {"S": without, "T": moved}
    kept = {"S": template({**beside, "Old": {**resource, "DeletionPolicy": "Retain"}})}
    yield Mutant(
        kind,
        f"{type}, retained",
        kept,
        after,
        "wrong",
        "a retained resource has the name",
        (COLLISION,),
    )
    rule = _DATA_LOST if type in data_types() else _FREE
    yield Mutant(
        _kind(rule, "name: free again"), f"{type}, deployed after", {"S": with_it}, after, *rule
    )
