"""Component endpoints with several instance types,
and components with their own models for some of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_apps import (
    add_repository,
    make_stack,
    only,
    resources,
    statements,
    synthesize,
    write_repository,
)
from component_apps import add_component, add_endpoint, warnings_of

from constructs_triton import InstancePool, InstanceType, TritonComponentEndpoint, TritonImage
from constructs_triton_core.errors import InvalidValueError

_MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
L4 = InstanceType.of("ml.g6.12xlarge")
A10G = InstanceType.of("ml.g5.12xlarge")
ONE_GPU = InstanceType.of("ml.g5.xlarge")
AMI = "al2023-ami-sagemaker-inference-gpu-4-1"


def add_pooled(stack: cdk.Stack, *types: InstanceType, **options: Any) -> TritonComponentEndpoint:
    """Add an endpoint with a pool of each type."""
    pools = [InstancePool(instance_type) for instance_type in types or (L4, A10G)]
    return add_endpoint(stack, instance_type=None, instance_pools=pools, **options)


def test_endpoint_has_pools_and_one_ami(stack: cdk.Stack, tmp_path: Path) -> None:
    """The variant has the pools beside managed scaling;
    a component has one specification for all types.
    """
    add_component(add_pooled(stack), tmp_path)

    template = synthesize(stack)

    (variant,) = only(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    first, second = variant["InstancePools"]
    assert first["InstanceType"] == "ml.g6.12xlarge"
    assert second["InstanceType"] == "ml.g5.12xlarge"
    assert variant["ManagedInstanceScaling"]["Status"] == "ENABLED"
    assert variant["InferenceAmiVersion"] == AMI
    assert "InstanceType" not in variant
    component = only(template, "AWS::SageMaker::InferenceComponent")
    assert "Specification" in component
    assert "Specifications" not in component
    assert warnings_of(stack) == {}


def test_own_models_are_a_specification_for_each_type(stack: cdk.Stack, tmp_path: Path) -> None:
    """Each type has its specification, with the models of that type, which the role can read."""
    write_repository(tmp_path / "other")
    (tmp_path / "other" / "scale" / "1" / "model.py").write_text(_MODEL)
    other = add_repository(stack, tmp_path / "other", "Other")
    pools = [InstancePool(A10G, model_repository=other)]
    add_component(add_pooled(stack), tmp_path / "models", instance_pools=pools)

    template = synthesize(stack)

    component = only(template, "AWS::SageMaker::InferenceComponent")
    assert "Specification" not in component
    first, second = component["Specifications"]
    assert first["InstanceType"] == "ml.g6.12xlarge"
    assert second["InstanceType"] == "ml.g5.12xlarge"
    for name in ("ComputeResourceRequirements", "StartupParameters"):
        assert first[name] == second[name]

    models = resources(template, "AWS::SageMaker::Model")
    urls = {}
    for specification in (first, second):
        name = specification["ModelName"]["Fn::GetAtt"][0]
        urls[name] = models[name]["Properties"]["PrimaryContainer"]["ModelDataUrl"]
    assert urls.keys() == models.keys()
    assert len(set(urls.values())) == 2
    granted = statements(template).values()
    read = str([statement for statement in granted if "s3:GetObject" in str(statement["Action"])])
    for url in urls.values():
        assert url.rpartition("/")[2] in read


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ([ONE_GPU], 'must be one of the endpoint\'s instance_pools, got "ml.g5.xlarge"'),
        ([A10G, A10G], 'must be unique, got "ml.g5.12xlarge"'),
        ([L4, A10G], "no instance type uses the model_repository of the component"),
    ],
)
def test_types_of_a_component_are_those_of_its_endpoint(
    pools: list[InstanceType], message: str, tmp_path: Path
) -> None:
    """A component can only say more about types that its endpoint has."""
    given = [InstancePool(instance_type, model="pipeline") for instance_type in pools]
    with pytest.raises(InvalidValueError, match=f"^instance_pools: {message}"):
        add_component(add_pooled(make_stack()), tmp_path, instance_pools=given)


def test_pool_without_models_of_its_own_is_an_error(tmp_path: Path) -> None:
    """It would change nothing."""
    with pytest.raises(InvalidValueError, match='12xlarge" has no models of its own'):
        add_component(add_pooled(make_stack()), tmp_path, instance_pools=[InstancePool(A10G)])


def test_models_belong_to_components(tmp_path: Path) -> None:
    """An endpoint with components has no models, so its pools have none."""
    pools = [InstancePool(L4), InstancePool(A10G, model="scale")]
    with pytest.raises(
        InvalidValueError, match="an endpoint with components has no models, got some on ml"
    ):
        add_endpoint(make_stack(), instance_type=None, instance_pools=pools)


def test_copy_must_fit_on_every_type(tmp_path: Path) -> None:
    """The error names the types that are too small."""
    endpoint = add_pooled(make_stack(), L4, ONE_GPU)
    with pytest.raises(
        InvalidValueError, match=r"^instance_pools, ml\.g5\.xlarge: number_of_accelerator"
    ):
        add_component(endpoint, tmp_path, number_of_accelerator_devices=2)


def test_copies_must_fit_on_instances_of_the_smallest_type(tmp_path: Path) -> None:
    """Any of the types may be that of all instances."""
    endpoint = add_pooled(make_stack(), L4, ONE_GPU)
    with pytest.raises(InvalidValueError, match="first copies of its components need more GPUs"):
        add_component(endpoint, tmp_path, copy_count=3)


def test_one_ami_is_required_if_the_defaults_differ(stack: cdk.Stack, tmp_path: Path) -> None:
    """The image of a further component counts too, and nothing is added to the stack."""
    endpoint = add_pooled(stack)
    with pytest.raises(InvalidValueError, match=r"^inference_ami_version: is required"):
        add_component(endpoint, tmp_path, image=TritonImage.dlc("25.04"))
    assert stack.node.try_find_child("Pipeline") is None

    chosen = make_stack()
    endpoint = add_pooled(chosen, inference_ami_version=AMI)
    add_component(endpoint, tmp_path, image=TritonImage.dlc("25.04"))
    (variant,) = only(synthesize(chosen), "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert variant["InferenceAmiVersion"] == AMI


def test_volume_size_is_checked_for_every_type() -> None:
    """A type with local NVMe storage supports no volume size."""
    with pytest.raises(InvalidValueError, match=r'^volume_size: "ml\.g6\.12xlarge" has'):
        add_pooled(make_stack(), volume_size=cdk.Size.gibibytes(100))
