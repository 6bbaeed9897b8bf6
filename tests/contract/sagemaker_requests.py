"""The calls that CloudFormation makes for SageMaker's resources,
with names for their references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from template_requests import Call, calls_of, resolve

Template = Mapping[str, Any]

_REGION, _ACCOUNT = "eu-west-1", "123456789012"
_PSEUDO = {"AWS::AccountId": _ACCOUNT, "AWS::Partition": "aws", "AWS::Region": _REGION}
_UPDATE_ONLY = (
    "ExcludeRetainedVariantProperties",
    "RetainAllVariantProperties",
    "RetainDeploymentConfig",
)


def _arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{_REGION}:{_ACCOUNT}:{resource}"


# The values of Ref (no attribute) and Fn::GetAtt of each type of resource after its creation.
_VALUES: dict[tuple[str, str], Callable[[str], str]] = {
    ("AWS::CloudWatch::Alarm", ""): lambda name: name,
    ("AWS::CloudWatch::Alarm", "Arn"): lambda name: _arn("cloudwatch", f"alarm:{name}"),
    ("AWS::EC2::SecurityGroup", "GroupId"): lambda name: f"sg-{_hex(name)}",
    ("AWS::EC2::Subnet", ""): lambda name: f"subnet-{_hex(name)}",
    ("AWS::IAM::Role", "Arn"): lambda name: f"arn:aws:iam::{_ACCOUNT}:role/{name}",
    ("AWS::KMS::Key", "Arn"): lambda name: _arn("kms", f"key/{_hex(name)}"),
    ("AWS::S3::Bucket", ""): lambda name: f"stack-{name.lower()}",
    ("AWS::SNS::Topic", ""): lambda name: _arn("sns", name),
    ("AWS::SageMaker::Endpoint", "EndpointName"): lambda name: name,
    ("Custom::TritonAdoptedEndpoint", "EndpointName"): lambda name: name,
    ("AWS::SageMaker::EndpointConfig", "EndpointConfigName"): lambda name: name,
    ("AWS::SageMaker::Model", "ModelName"): lambda name: name,
}


def all_calls(template: Template) -> list[Call]:
    """Return the SageMaker, scaling and CloudWatch calls of a template."""
    expanded = {"Resources": _expand(template["Resources"], template.get("Mappings", {}))}
    names = _names(expanded["Resources"])
    return [*sagemaker_calls(expanded["Resources"], names), *calls_of(expanded, names)]


def sagemaker_calls(resources: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Call]:
    """Return one call per model and configuration, and two per endpoint: creation and update.

    An endpoint that existed before is only updated.
    """
    for logical_id, resource in resources.items():
        request = resolve(resource.get("Properties", {}), names)
        match resource["Type"]:
            case "AWS::SageMaker::Model":
                yield Call("sagemaker", "CreateModel", {"ModelName": logical_id, **request})
            case "AWS::SageMaker::EndpointConfig":
                yield Call(
                    "sagemaker",
                    "CreateEndpointConfig",
                    {"EndpointConfigName": logical_id, **request},
                )
            case "AWS::SageMaker::Endpoint":
                request = {"EndpointName": logical_id, **request}
                yield Call("sagemaker", "CreateEndpoint", _without(request, *_UPDATE_ONLY))
                yield Call("sagemaker", "UpdateEndpoint", _without(request, "Tags"))
            case "Custom::TritonAdoptedEndpoint":
                own = ("Tags", "ServiceToken", "ServiceTimeout")
                yield Call("sagemaker", "UpdateEndpoint", _without(request, *own))


def _without(request: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in names}


def _names(resources: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"{logical_id}.{attribute}" if attribute else logical_id: value(logical_id)
        for logical_id, resource in resources.items()
        for (kind, attribute), value in _VALUES.items()
        if kind == resource["Type"]
    }


def _expand(value: Any, mappings: Mapping[str, Any]) -> Any:
    """Resolve ``Fn::Sub`` and ``Fn::FindInMap`` in the forms that the CDK writes."""
    match value:
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{([A-Za-z:]+)\}", lambda found: _PSEUDO[found[1]], text)
        case {"Fn::FindInMap": [str(name), {"Ref": "AWS::Region"}, str(key)]}:
            return mappings[name][_REGION][key]
        case dict():
            return {key: _expand(each, mappings) for key, each in value.items()}
        case list():
            return [_expand(each, mappings) for each in value]
    return value


def _hex(name: str) -> str:
    return name.encode().hex()[-17:]
