"""The graph of what the endpoints of a template serve."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from constructs_triton.cli import main
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_tools.assembly.graph_drawing import draw_graphs
from constructs_triton_tools.assembly.service_graph import Edge, Node, ServiceGraph
from constructs_triton_tools.assembly.utilization import share_of_instance

TYPE = "AWS::SageMaker::"


def _resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def _variant(name: str, weight: float) -> dict[str, Any]:
    model = {"Fn::GetAtt": ["Model", "ModelName"]}
    given = {
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 2,
        "InitialVariantWeight": weight,
    }
    return {"VariantName": name, "ModelName": model, **given}


def _allowing(action: str, resource: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    return _resource(
        "AWS::IAM::Policy",
        PolicyDocument={"Statement": [statement]},
        Roles=[{"Ref": "Caller"}],
        PolicyName="p",
    )


TEMPLATE = {
    "Resources": {
        "Endpoint": _resource(
            f"{TYPE}Endpoint",
            EndpointName="vision",
            EndpointConfigName={"Fn::GetAtt": ["Config", "EndpointConfigName"]},
        ),
        "Config": _resource(
            f"{TYPE}EndpointConfig", ProductionVariants=[_variant("Old", 3), _variant("New", 1)]
        ),
        "Model": _resource(
            f"{TYPE}Model",
            PrimaryContainer={
                "Image": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/triton:26.05",
                "ModelDataUrl": "s3://models/resnet.tar.gz",
                "Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": 'res"net]'},
            },
        ),
        "Target": _resource(
            "AWS::ApplicationAutoScaling::ScalableTarget",
            ResourceId="endpoint/vision/variant/Old",
            MinCapacity=1,
            MaxCapacity=5,
        ),
        "Policy": _resource(
            "AWS::ApplicationAutoScaling::ScalingPolicy",
            ScalingTargetId={"Ref": "Target"},
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "PredefinedMetricSpecification": {
                    "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
                },
                "TargetValue": 600,
            },
        ),
        "Caller": _resource("AWS::IAM::Role"),
        "MayCall": _allowing("sagemaker:InvokeEndpoint", {"Ref": "Endpoint"}),
        "Other": _allowing("sagemaker:DescribeEndpoint", {"Ref": "Endpoint"}),
    }
}


def _edges(graph: ServiceGraph) -> set[tuple[str, str, str]]:
    texts = {node.key: node.lines[0] for node in graph.nodes}
    return {(texts[each.start], each.text, texts[each.end]) for each in graph.edges}


def test_graph_has_callers_variants_models_storage_and_scaling() -> None:
    """Each variant has its share of the requests,
    and only a policy that allows calls makes a caller.
    """
    graph = ServiceGraph.of(_stack(TEMPLATE))
    assert _edges(graph) == {
        ("Caller", "may call", "endpoint vision"),
        ("endpoint vision", "75%", "Old"),
        ("endpoint vision", "25%", "New"),
        ("1 to 5 instances", "scales", "Old"),
        ("Old", "", 'res"net]'),
        ("New", "", 'res"net]'),
        ('res"net]', "reads", "s3://models/resnet.tar.gz"),
    }
    scaling = next(node for node in graph.nodes if node.kind == "scaling")
    assert scaling.lines[1] == "SageMakerVariantInvocationsPerInstance at 600"


@pytest.mark.parametrize(
    ("metric", "types", "target", "shown"),
    [
        ("CPUUtilization", ["ml.c5.large"], 120, "CPUUtilization at 120 (60% of 2 vCPUs)"),
        ("GPUUtilization", ["ml.g5.xlarge"], 70, "GPUUtilization at 70 (70% of 1 GPU)"),
        (
            "GPUUtilization",
            ["ml.g5.xlarge", "ml.g5.12xlarge"],
            70,
            "GPUUtilization at 70 (each GPU has 100)",
        ),
        ("CPUUtilization", ["ml.unknown.large"], 120, "CPUUtilization at 120 (each vCPU has 100)"),
        ("OverheadLatency", ["ml.c5.large"], 120, "OverheadLatency at 120"),
    ],
)
def test_target_above_100_percent_is_explained(
    metric: str, types: list[str], target: float, shown: str
) -> None:
    """Utilizations are sums over vCPUs or GPUs,
    so a target has its part of an instance beside it.
    """
    assert f"{metric} at {target}{share_of_instance(metric, target, types)}" == shown


def test_utilization_is_drawn_with_the_instance_type_of_its_variant() -> None:
    """The graph has the part of the variant's own instance type."""
    resources = dict(TEMPLATE["Resources"])
    properties = dict(resources["Policy"]["Properties"])
    properties["TargetTrackingScalingPolicyConfiguration"] = {
        "CustomizedMetricSpecification": {"MetricName": "CPUUtilization"},
        "TargetValue": 240,
    }
    resources["Policy"] = {**resources["Policy"], "Properties": properties}
    graph = ServiceGraph.of(_stack({"Resources": resources}))
    scaling = next(node for node in graph.nodes if node.kind == "scaling")
    assert scaling.lines[1] == "CPUUtilization at 240 (60% of 4 vCPUs)"


def test_components_are_drawn_on_their_variant() -> None:
    """A component is between its variant and its model;
    an adapter reads its files and has no container.
    """
    resources = dict(TEMPLATE["Resources"])
    variant = {
        "VariantName": "AllTraffic",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
    }
    resources["Config"] = _resource(f"{TYPE}EndpointConfig", ProductionVariants=[variant])
    resources["Component"] = _resource(
        f"{TYPE}InferenceComponent",
        InferenceComponentName="resnet",
        EndpointName={"Fn::GetAtt": ["Endpoint", "EndpointName"]},
        VariantName="AllTraffic",
        Specification={
            "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
            "ComputeResourceRequirements": {"NumberOfAcceleratorDevicesRequired": 1},
        },
    )
    resources["German"] = _resource(
        f"{TYPE}InferenceComponent",
        InferenceComponentName="german",
        EndpointName={"Fn::GetAtt": ["Endpoint", "EndpointName"]},
        Specification={
            "BaseInferenceComponentName": "resnet",
            "Container": {"ArtifactUrl": "s3://models/german.tar.gz"},
        },
    )
    edges = _edges(ServiceGraph.of(_stack({"Resources": resources})))
    assert {("AllTraffic", "", "component resnet"), ("component resnet", "", 'res"net]')} <= edges
    assert ("adapter german", "reads", "s3://models/german.tar.gz") in edges


def test_command_prints_mermaid_without_foreign_syntax(tmp_path: Path, capsys: Any) -> None:
    """Quotes and brackets of names are written as character codes,
    in a Markdown block if asked for.
    """
    path = tmp_path / "Shop.template.json"
    path.write_text(json.dumps(TEMPLATE))
    assert main(["graph", str(path), "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("```mermaid", "flowchart LR", "```")
    assert any('"res#34;net#93;<br>triton:26.05"' in line for line in lines)


def test_picture_has_every_node_and_no_foreign_markup(tmp_path: Path, capsys: Any) -> None:
    """The SVG file is well-formed, has colors for dark pages,
    and a name of a model is text in it.
    """
    path, picture = tmp_path / "Shop.template.json", tmp_path / "app.svg"
    path.write_text(json.dumps(TEMPLATE).replace('res\\"net]', "<b>resnet</b>"))
    assert main(["graph", str(path), "-o", str(picture)]) == 0
    assert capsys.readouterr() == ("", f"wrote {picture}\n")
    content = picture.read_text()
    texts = [
        each.text
        for each in ElementTree.fromstring(content).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert {
        "Shop",
        "endpoint vision",
        "Caller",
        "Old",
        "New",
        "<b>resnet</b>",
        "75%",
        "may call",
    } <= {*texts}
    assert texts.count("<b>resnet</b>") == 1  # both variants serve it
    assert "prefers-color-scheme: dark" in content
    assert main(["graph", str(path), "-o", str(tmp_path / "app.png")]) == 2
    assert "--output: must end in .svg" in capsys.readouterr().err


def test_picture_shortens_long_lists() -> None:
    """Of hundreds of callers and components a picture has the first ones and
    the number of the others.
    """
    callers = [Node(f"c{number}", "caller", (f"caller {number}",)) for number in range(300)]
    parts = [Node(f"p{number}", "component", (f"part {number}",)) for number in range(13)]
    nodes = [Node("e", "endpoint", ("endpoint e",)), Node("v", "variant", ("v",)), *callers, *parts]
    edges = [
        Edge("e", "v"),
        *(Edge(each.key, "e") for each in callers),
        *(Edge("v", each.key) for each in parts),
    ]
    drawn = draw_graphs([ServiceGraph("Shop", nodes, edges)])
    assert ("caller 11<" in drawn, "caller 12<" in drawn) == (True, False)
    assert ("and 288 more" in drawn, "and 1 more" in drawn) == (True, True)


def test_boxes_of_a_picture_do_not_overlap() -> None:
    """Each box of each example of this file has its own place."""
    drawn = draw_graphs([ServiceGraph.of(_stack(TEMPLATE))])
    found = re.findall(r'<rect class="box" x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', drawn)
    boxes = [tuple(map(float, each)) for each in found]
    assert len(boxes) == 7
    for one, other in combinations(boxes, 2):
        beside = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0]
        assert beside or one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]


def test_app_without_endpoints_is_an_error(tmp_path: Path, capsys: Any) -> None:
    """There is nothing to draw, and the error says where."""
    path = tmp_path / "Shop.template.json"
    path.write_text('{"Resources": {}}')
    assert main(["graph", str(path)]) == 2
    assert 'no endpoint in the stacks "Shop"' in capsys.readouterr().err


def _stack(body: dict[str, Any]) -> SynthesizedStack:
    return SynthesizedStack("Shop", Template(body))
