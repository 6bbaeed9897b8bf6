"""Names of components: right whether or not the ARN of a component keeps capital letters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_apps import make_stack, resources, synthesize
from component_apps import add_component, add_endpoint
from test_adapters import VLLM, write_adapter
from test_container_component import add_chat

from constructs_triton import ServingImage
from constructs_triton_core.facts import limits

STACK_ID = "arn:aws:cloudformation:eu-west-1:123456789012:stack/Shop/"
UUID = "51af3dc0-da77-11e4-872e-1234567db123"
KIND = "AWS::SageMaker::InferenceComponent"


def resolved(value: Any, arns: dict[str, str]) -> Any:
    """Return what CloudFormation makes of a name, with the ARNs of the components."""
    found = value
    match value:
        case {"Ref": "AWS::StackId"}:
            found = STACK_ID + UUID
        case {"Fn::GetAtt": [name, "InferenceComponentArn"]}:
            found = arns[name]
        case {"Fn::Split": [separator, text]}:
            found = resolved(text, arns).split(separator)
        case {"Fn::Select": [index, values]}:
            found = resolved(values, arns)[int(index)]
        case {"Fn::Join": [separator, [*parts]]}:
            found = str(separator).join(str(resolved(part, arns)) for part in parts)
        case list():
            found = [resolved(part, arns) for part in value]
    return found


def names(template: dict[str, Any]) -> dict[str, str]:
    """Return the name of each component by its logical ID."""
    found = resources(template, KIND)
    return {
        logical_id: resolved(component["Properties"]["InferenceComponentName"], {})
        for logical_id, component in found.items()
    }


@pytest.mark.parametrize("given", [None, "DigitsProd", "digits"])
@pytest.mark.parametrize("keeps_letters", [True, False])
def test_whatever_uses_the_name_names_the_component(
    tmp_path: Path, given: str | None, keeps_letters: bool
) -> None:
    """Outputs, scaling and alarms have the name of the component with either form of the ARN."""
    stack = make_stack()
    component = add_component(
        add_endpoint(stack), tmp_path / "models", id="Digits", inference_component_name=given
    )
    cdk.CfnOutput(stack, "Name", value=component.inference_component_name)
    count = component.auto_scale_copy_count(min_capacity=0, max_capacity=2)
    count.scale_on_invocations_per_copy("Requests", target_invocations_per_minute=60)
    component.add_alarms()
    template = synthesize(stack)
    ((logical_id, name),) = names(template).items()
    arn = f"arn:aws:sagemaker:eu-west-1:123456789012:inference-component/{name}"
    arns = {logical_id: arn if keeps_letters else arn.lower()}
    (target,) = resources(template, "AWS::ApplicationAutoScaling::ScalableTarget").values()
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    dimensions = [
        dimension["Value"]
        for alarm in alarms
        for part in [alarm["Properties"], *alarm["Properties"].get("Metrics", [])]
        for dimension in part.get("Dimensions", [])
    ]
    assert resolved(template["Outputs"]["Name"]["Value"], arns) == name
    assert resolved(target["Properties"]["ResourceId"], arns) == f"inference-component/{name}"
    assert dimensions
    assert {resolved(each, arns) for each in dimensions} == {name}


def test_generated_names_are_valid_and_different(tmp_path: Path) -> None:
    """Components, adapters, the same id in another scope and another stack have names of their own,
    which SageMaker accepts.
    """
    stack = make_stack()
    endpoint = add_endpoint(stack)
    add_component(endpoint, tmp_path / "models", id="Digits_of_a_very_long_NAME")
    add_component(endpoint, tmp_path / "models", id="__")
    image = ServingImage.from_registry("own/server:1", cuda_version="13.0")
    base = add_chat(endpoint, image=image, environment=VLLM)
    base.add_adapter("German", source=write_adapter(tmp_path / "german"))
    found = names(synthesize(stack))
    assert len(set(found.values())) == 4
    for name in found.values():
        assert re.fullmatch(limits.INFERENCE_COMPONENT_NAME.pattern, name)
        assert len(name) <= limits.INFERENCE_COMPONENT_NAME.max_length
        assert name == name.lower()
        assert name.endswith(UUID)
