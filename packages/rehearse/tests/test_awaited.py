"""What a template names by its text, and creates itself."""

from __future__ import annotations

from typing import Any

import pytest

from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import NONE, Request, StackVersion, Version
from constructs_triton_core.cloud_assembly.template import Template

_ENDPOINT = {"Ref": "AWS::StackName"}
_TARGET = {
    "MaxCapacity": 2,
    "MinCapacity": 1,
    "ResourceId": "endpoint/S/variant/v",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    "ServiceNamespace": "sagemaker",
}
_VARIANT = {
    "VariantName": "v",
    "ModelName": {"Fn::GetAtt": "Model.ModelName"},
    "InitialInstanceCount": 1,
    "InstanceType": "ml.c5.large",
}
_MODEL = {
    "ExecutionRoleArn": "arn:aws:iam::123456789012:role/outside",
    "PrimaryContainer": {"Image": "public.ecr.aws/shop/model:1"},
}


def _resource(type: str, *needed: str, **properties: Any) -> dict[str, Any]:
    return {"Type": type, "Properties": properties, "DependsOn": list(needed)}


def _template(*needed: str, is_outside: bool = False) -> Template:
    resources = {
        "Target": _resource("AWS::ApplicationAutoScaling::ScalableTarget", *needed, **_TARGET),
        "Model": _resource("AWS::SageMaker::Model", **_MODEL),
        "Config": _resource("AWS::SageMaker::EndpointConfig", ProductionVariants=[_VARIANT]),
        "Endpoint": _resource(
            "AWS::SageMaker::Endpoint",
            EndpointName=_ENDPOINT,
            EndpointConfigName={"Fn::GetAtt": "Config.EndpointConfigName"},
        ),
    }
    if is_outside:
        del resources["Endpoint"]
    return Template({"Resources": resources})


@pytest.mark.parametrize(
    ("template", "is_refused"),
    [
        (_template(), True),
        (_template("Endpoint"), False),
        (_template(is_outside=True), False),
    ],
)
def test_endpoint_of_the_template_does_not_exist_before_its_creation(
    template: Template, is_refused: bool
) -> None:
    """A target that does not wait for its endpoint fails; other endpoints may exist."""
    new = Version((StackVersion("S", template),))
    found = simulate(Request(NONE, new, {}, "none", 1))
    codes = [problem.code for problem in found.errors]
    assert codes == ["rehearse-update-fails"] * is_refused
