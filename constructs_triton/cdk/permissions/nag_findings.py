"""``acknowledge_nag_findings``: the findings of cdk-nag that this library's resources raise,
with reasons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsii
from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct, IValidation

from constructs_triton_core.facts import facts_of

_OWNER = "constructs-triton:owner"
# Rules that are not of AWS Solutions have the same names in these packs.
_PACKS = ("HIPAA.Security", "NIST.800.53.R4", "NIST.800.53.R5", "PCI.DSS.321", "Serverless")

# Statements of the same kind in one role have a number, and parts of a long one another.
_NUMBER = re.compile(r"(?<!\d)(\d+)?(Part\d+)?$")
_load = facts_of(__package__)


def mark_as_own(construct: Construct) -> None:
    """Mark a construct whose resources this library creates, before it has children."""
    node = construct.node
    node.set_context(_OWNER, node.path)


def acknowledge_nag_findings(scope: Construct) -> None:
    """Acknowledge, with a reason each, the findings of cdk-nag that no property of this library
    removes.

    These are findings of resources that this library creates below ``scope``, for the rules of AWS
    Solutions, HIPAA, NIST 800-53 and PCI DSS. Those of your own resources stay. So do those that a
    property removes, such as ``vpc`` of the deploy-time functions. Call it at any time before
    ``app.synth()``.

    Args:
        scope: The app, or any construct in it.
    """
    scope.node.add_validation(_Acknowledgements(scope))


@jsii.implements(IValidation)
class _Acknowledgements:
    """Acknowledges findings when references between stacks are resolved, and before cdk-nag looks
    for them.

    An Aspect would be too early: the name of a finding contains the resolved reference.
    """

    def __init__(self, scope: Construct) -> None:
        self._scope = scope

    def validate(self) -> list[str]:
        """Acknowledge the findings of all resources; there are no errors."""
        for each in self._scope.node.find_all():
            owner = each.node.try_get_context(_OWNER) if isinstance(each, _CHECKED) else None
            if owner is not None and isinstance(each, CfnResource):
                _acknowledge(each, dict(_reasons(each, each.node.path.removeprefix(f"{owner}/"))))
        return []


_CHECKED = (
    iam.CfnManagedPolicy,
    iam.CfnPolicy,
    lambda_.CfnFunction,
    s3.CfnBucket,
    ec2.CfnSecurityGroup,
)


def _acknowledge(resource: CfnResource, reasons: Mapping[str, str]) -> None:
    """Acknowledge rules on a resource; one without a pack in its name, in each pack."""
    for rule, reason in reasons.items():
        names = [rule] if rule.startswith("AwsSolutions") else [f"{pack}-{rule}" for pack in _PACKS]
        for name in names:
            Validations.of(resource).acknowledge(Acknowledgment(id=name, reason=reason))


def _reasons(resource: IConstruct, path: str) -> Iterator[tuple[str, str]]:
    """Yield the rules that a resource violates, with the reasons.

    ``path`` is that below its owner.
    """
    rules = _load("nag_reasons")["rules"]
    match resource:
        case iam.CfnManagedPolicy():
            yield from _wildcards(resource)
        case iam.CfnPolicy():
            yield from _wildcards(resource)
            yield from rules["inline policy"].items()
        case lambda_.CfnFunction():
            yield from rules["function"].items()
        case s3.CfnBucket() if path == "Bucket/Resource":
            yield from rules["bucket"].items()
        case ec2.CfnSecurityGroup() if path == "Runtime/SecurityGroup/Resource":
            yield from rules["VPC endpoint"].items()


def _wildcards(policy: iam.CfnPolicy | iam.CfnManagedPolicy) -> Iterator[tuple[str, str]]:
    """Yield the findings of the rule IAM5 for the statements of this library."""
    document, reasons = (
        Stack.of(policy).resolve(policy.policy_document),
        _load("nag_reasons")["wildcards"],
    )
    for statement in document["Statement"]:
        sid = _NUMBER.sub("", statement.get("Sid", ""))
        reason = next((reason for reason, sids in reasons.items() if sid in sids), None)
        if reason is None:
            continue
        resources = statement.get("Resource", [])
        for each in resources if isinstance(resources, list) else [resources]:
            name = _flat(each)
            if "*" in name:
                yield f"AwsSolutions-IAM5[Resource::{name}]", reason


def _flat(value: Any) -> str:
    """Return a value with intrinsic functions as cdk-nag writes it in the name of a finding.

    Source: cdk-nag, src/utils/flatten-cfn-reference.ts.
    """
    match value:
        case str():
            return value.replace("${", "<").replace("}", ">")
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(_flat, parts))
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{_flat(resource)}.{_flat(attribute)}>"
        case {"Fn::Sub": inner} | {"Fn::ImportValue": inner}:
            return _flat(inner)
        case {"Ref": name}:
            return f"<{_flat(name)}>"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
