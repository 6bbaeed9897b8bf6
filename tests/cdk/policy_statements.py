"""The policy statements of a template, with their ARNs as an example account would have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from service_authorization import resource_arn

_PSEUDO_PARAMETERS = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/Stack/51af3dc0-da77",
    "AWS::URLSuffix": "amazonaws.com",
}
# The service and the resource in the service authorization reference, for what Fn::GetAtt returns
# the ARN of.
_ARNS = {
    ("AWS::CloudWatch::Alarm", "Arn"): ("cloudwatch", "alarm"),
    ("AWS::CodeBuild::Project", "Arn"): ("codebuild", "project"),
    ("AWS::IAM::Role", "Arn"): ("iam", "role"),
    ("AWS::KMS::Key", "Arn"): ("kms", "key"),
    ("AWS::Lambda::Function", "Arn"): ("lambda", "function"),
    ("AWS::S3::Bucket", "Arn"): ("s3", "bucket"),
    ("AWS::SageMaker::Endpoint", "EndpointArn"): ("sagemaker", "endpoint"),
    ("Custom::TritonAdoptedEndpoint", "EndpointArn"): ("sagemaker", "endpoint"),
    ("AWS::SageMaker::InferenceComponent", "InferenceComponentArn"): (
        "sagemaker",
        "inference-component",
    ),
    ("AWS::SNS::Topic", "TopicArn"): ("sns", "topic"),
}


@dataclass(frozen=True)
class PolicyStatement:
    """A statement, the resource of the template that contains it, and the roles that it belongs to.

    ``resources`` is empty for a trust policy. ``unsupported`` are elements that are not read.
    """

    owner: str
    owner_type: str
    roles: tuple[str, ...]
    sid: str | None
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    condition_keys: tuple[str, ...]
    unsupported: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.owner} {self.sid or ', '.join(self.actions)}"


def policy_statements(template: Mapping[str, Any]) -> list[PolicyStatement]:
    """All statements of all policies of a template, wherever they are."""
    found = []
    for name, resource in template["Resources"].items():
        for document in _documents(resource.get("Properties", {})):
            for statement in listed(document["Statement"]):
                found.append(_read(template, name, statement))
    return found


def _documents(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the policy documents in a value, at any depth."""
    if isinstance(value, dict):
        if "Statement" in value:
            yield value
        for member in value.values():
            yield from _documents(member)
    elif isinstance(value, list):
        for item in value:
            yield from _documents(item)


def _read(template: Mapping[str, Any], owner: str, statement: Mapping[str, Any]) -> PolicyStatement:
    known = {"Sid", "Effect", "Action", "Resource", "Principal", "Condition"}
    condition_keys: list[str] = []
    for tests in statement.get("Condition", {}).values():
        condition_keys += tests
    resources = listed(statement.get("Resource", []))
    return PolicyStatement(
        owner=owner,
        owner_type=template["Resources"][owner]["Type"],
        roles=tuple(_roles(template, owner)),
        sid=statement.get("Sid"),
        actions=tuple(listed(statement.get("Action", []))),
        resources=tuple(_render(template, resource) for resource in resources),
        condition_keys=tuple(condition_keys),
        unsupported=tuple(sorted(statement.keys() - known)),
    )


def _roles(template: Mapping[str, Any], owner: str) -> list[str]:
    """Return the roles that a policy is attached to, by their logical IDs; a role has its own."""
    resource = template["Resources"][owner]
    if resource["Type"] == "AWS::IAM::Role":
        return [owner]
    names = []
    for role in resource["Properties"].get("Roles", []):
        is_reference = isinstance(role, dict) and "Ref" in role
        names.append(role["Ref"] if is_reference else str(role))
    return names


def listed(value: Any) -> list[Any]:
    """Return the values of a statement, which has an only one without a list."""
    return value if isinstance(value, list) else [value]


def _render(template: Mapping[str, Any], value: Any) -> str:
    """The value that CloudFormation would use; what has a generated name gets its logical id."""
    match value:
        case str():
            return value
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_render(template, part) for part in parts)
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{([\w:]+)\}", lambda match: _reference(template, match[1]), text)
        case {"Ref": name}:
            return _reference(template, name)
        case {"Fn::GetAtt": [name, attribute]}:
            return _attribute(template, name, attribute)
        case {"Fn::FindInMap": _} | {"Fn::Select": _}:
            return "from-the-template"
    raise AssertionError(f"no rule renders {value}; add one to policy_statements.py")


def _reference(template: Mapping[str, Any], name: str) -> str:
    """Return the value of ``Ref``: of a topic its ARN, of other resources their names."""
    if name in _PSEUDO_PARAMETERS:
        return _PSEUDO_PARAMETERS[name]
    resource = template["Resources"].get(name)
    if resource is not None and resource["Type"] == "AWS::SNS::Topic":
        return resource_arn("sns", "topic", name)
    return name


def _attribute(template: Mapping[str, Any], name: str, attribute: str) -> str:
    """Return the value of ``Fn::GetAtt``; an attribute that is no ARN is ``name-attribute``."""
    resource_type = template["Resources"][name]["Type"]
    if resource_type == "AWS::Logs::LogGroup":
        return resource_arn("logs", "log-group", name) + ":*"
    if (resource_type, attribute) in _ARNS:
        return resource_arn(*_ARNS[resource_type, attribute], name)
    return f"{name}-{attribute}"
