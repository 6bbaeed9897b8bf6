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
            found += [_read(template, name, each) for each in listed(document["Statement"])]
    return found


def _documents(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "Statement" in value:
            yield value
        for each in value.values():
            yield from _documents(each)
    elif isinstance(value, list):
        for each in value:
            yield from _documents(each)


def _read(template: Mapping[str, Any], owner: str, statement: Mapping[str, Any]) -> PolicyStatement:
    resource = template["Resources"][owner]
    roles = (
        [owner] if resource["Type"] == "AWS::IAM::Role" else resource["Properties"].get("Roles", [])
    )
    known = {"Sid", "Effect", "Action", "Resource", "Principal", "Condition"}
    return PolicyStatement(
        owner=owner,
        owner_type=resource["Type"],
        roles=tuple(
            each["Ref"] if isinstance(each, dict) and "Ref" in each else str(each) for each in roles
        ),
        sid=statement.get("Sid"),
        actions=tuple(listed(statement.get("Action", []))),
        resources=tuple(_render(template, each) for each in listed(statement.get("Resource", []))),
        condition_keys=tuple(
            key for tests in statement.get("Condition", {}).values() for key in tests
        ),
        unsupported=tuple(sorted(statement.keys() - known)),
    )


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
    if name in _PSEUDO_PARAMETERS:
        return _PSEUDO_PARAMETERS[name]
    resource = template["Resources"].get(name)
    is_topic = resource is not None and resource["Type"] == "AWS::SNS::Topic"
    return resource_arn("sns", "topic", name) if is_topic else name


def _attribute(template: Mapping[str, Any], name: str, attribute: str) -> str:
    resource_type = template["Resources"][name]["Type"]
    if resource_type == "AWS::Logs::LogGroup":
        return resource_arn("logs", "log-group", name) + ":*"
    if (resource_type, attribute) in _ARNS:
        return resource_arn(*_ARNS[resource_type, attribute], name)
    return f"{name}-{attribute}"
