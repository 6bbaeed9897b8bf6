"""Reading the inference components of a cloud assembly."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from test_local_assembly import _template, _write

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.sources.assembly import read_endpoints
from constructs_triton_tools.local.sources.specs import label_of, variants_of

Resources = dict[str, Any]


@pytest.fixture
def resources() -> Resources:
    """An endpoint with one variant without a model, and a component on it."""
    found: Resources = _template()["Resources"]
    variant = found["Config"]["Properties"]["ProductionVariants"][0]
    del variant["ModelName"]
    variant["InstanceType"] = "ml.g5.12xlarge"
    found["Digits"] = {
        "Type": "AWS::SageMaker::InferenceComponent",
        "Properties": {
            "EndpointName": {"Fn::GetAtt": ["Endpoint", "EndpointName"]},
            "VariantName": "AllTraffic",
            "Specification": {
                "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
                "StartupParameters": {"ContainerStartupHealthCheckTimeoutInSeconds": 900},
            },
        },
    }
    return found


def add_target(resources: Resources, component: str, minimum: int) -> None:
    name = {"Fn::Select": [1, {"Fn::Split": ["inference-component/", {"Ref": component}]}]}
    resources[f"{component}Target"] = {
        "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
        "Properties": {
            "ResourceId": {"Fn::Join": ["", ["inference-component/", name]]},
            "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
            "MinCapacity": minimum,
        },
    }


def test_component_has_the_container_of_its_model(tmp_path: Path, resources: Resources) -> None:
    """Its name is the logical ID if CloudFormation would generate one,
    else that of the template.
    """
    resources["Named"] = copy.deepcopy(resources["Digits"])
    resources["Named"]["Properties"]["InferenceComponentName"] = "sentiment"
    del resources["Named"]["Properties"]["VariantName"]
    (spec,) = read_endpoints(_write(tmp_path, {"Resources": resources}))
    assert spec.variants == ()
    assert [label_of(*pair) for pair in variants_of([spec])] == [
        "Endpoint/Digits",
        "Endpoint/sentiment",
    ]
    digits, named = spec.components
    assert digits.container.archive == tmp_path / "asset.abc.tar.gz"
    assert (digits.variant_name, named.variant_name) == ("AllTraffic", "AllTraffic")
    assert (digits.instance_types, digits.startup_timeout_seconds) == (("ml.g5.12xlarge",), 900)


@pytest.mark.parametrize(("minimum", "starts_at_zero"), [(0, True), (1, False)])
def test_component_with_a_minimum_of_zero_starts_at_zero(
    tmp_path: Path, resources: Resources, minimum: int, starts_at_zero: bool
) -> None:
    """Only the component of the scalable target does."""
    resources["Other"] = copy.deepcopy(resources["Digits"])
    add_target(resources, "Digits", minimum)
    (spec,) = read_endpoints(_write(tmp_path, {"Resources": resources}))
    assert [each.starts_at_zero for each in spec.components] == [starts_at_zero, False]


def test_network_isolation_is_that_of_the_endpoint(tmp_path: Path, resources: Resources) -> None:
    """The configuration has it, for all components."""
    resources["Config"]["Properties"]["EnableNetworkIsolation"] = True
    (spec,) = read_endpoints(_write(tmp_path, {"Resources": resources}))
    assert [each.container.is_isolated for each in spec.components] == [True]


def test_inline_container_runs_without_a_model(tmp_path: Path, resources: Resources) -> None:
    """Its archive is ``ArtifactUrl``."""
    model = resources["Model"]["Properties"]["PrimaryContainer"]
    container = {"Image": "i", "ArtifactUrl": model["ModelDataUrl"], "Environment": {"A": "1"}}
    resources["Digits"]["Properties"]["Specification"] = {"Container": container}
    (spec,) = read_endpoints(_write(tmp_path, {"Resources": resources}))
    (component,) = spec.components
    assert component.container.archive == tmp_path / "asset.abc.tar.gz"
    assert component.container.environment == {"A": "1"}


def test_what_does_not_run_locally_is_refused(tmp_path: Path, resources: Resources) -> None:
    """An endpoint without components, two components of one name, and a multi-model container."""
    without = {name: each for name, each in resources.items() if name != "Digits"}
    with pytest.raises(
        LocalEndpointError, match=r"no inference component of this stack runs on it; .*--end"
    ):
        read_endpoints(_write(tmp_path, {"Resources": without}))
    twice = {**resources, "Other": copy.deepcopy(resources["Digits"])}
    twice["Other"]["Properties"]["InferenceComponentName"] = "Digits"
    with pytest.raises(
        LocalEndpointError, match="two inference components are called 'Digits'; change"
    ):
        read_endpoints(_write(tmp_path, {"Resources": twice}))
    resources["Model"]["Properties"]["PrimaryContainer"]["Mode"] = "MultiModel"
    with pytest.raises(LocalEndpointError, match="cannot run a multi-model container; remove Mode"):
        read_endpoints(_write(tmp_path, {"Resources": resources}))


def test_adapter_is_named_and_does_not_run(tmp_path: Path, resources: Resources) -> None:
    """The components of Triton beside it run."""
    resources["German"] = copy.deepcopy(resources["Digits"])
    specification = {
        "BaseInferenceComponentName": "base",
        "Container": {"ArtifactUrl": "s3://b/a.tar.gz"},
    }
    resources["German"]["Properties"]["Specification"] = specification
    (spec,) = read_endpoints(_write(tmp_path, {"Resources": resources}))
    assert ([each.name for each in spec.components], spec.not_run) == (["Digits"], ("German",))


@pytest.mark.parametrize(
    "of_others",
    [
        {"Metadata": {"constructs-triton:not-triton": True}},
        *(
            {
                "Properties": {
                    "PrimaryContainer": {"Image": f"1.dkr.ecr.us-east-1.amazonaws.com/{name}"}
                }
            }
            for name in (
                "vllm:0.20",
                "huggingface-vllm:0.27-gpu",
                "llama-cpp:server-sagemaker-cuda-v1",
            )
        ),
    ],
    ids=["construct", "vllm", "huggingface-vllm", "llama-cpp"],
)
def test_container_of_others_is_named_and_not_read(
    tmp_path: Path, resources: Resources, of_others: dict[str, Any]
) -> None:
    """It has no models that run here, so those of Triton run without it."""
    resources["Chat"] = copy.deepcopy(resources["Digits"])
    resources["Chat"]["Properties"]["Specification"]["ModelName"] = {"Ref": "Other"}
    resources["Other"] = {"Type": "AWS::SageMaker::Model", **of_others}
    (spec,) = read_endpoints(_write(tmp_path, {"Resources": resources}))
    assert ([each.name for each in spec.components], spec.not_run) == (["Digits"], ("Chat",))
    del resources["Digits"]
    (spec,) = read_endpoints(_write(tmp_path, {"Resources": resources}))
    assert (spec.components, spec.not_run) == ((), ("Chat",))


def test_variant_of_others_is_refused(tmp_path: Path) -> None:
    """An endpoint with one model of another container cannot run without it."""
    template = _template(Image="1.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36-lmi28.0.0")
    with pytest.raises(
        LocalEndpointError, match=r"Demo/Model: its container is not Triton, .*--endpoint"
    ):
        read_endpoints(_write(tmp_path, template))
