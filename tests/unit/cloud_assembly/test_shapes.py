"""Cloud assemblies of another form: one error with the place, in each command that reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from template_targets import DOCUMENTS, read_assembly

from constructs_triton.cli import main
from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.shapes import PROPERTIES
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Template, check_shape
from constructs_triton_core.errors import TemplateError

MODEL, TARGET = "AWS::SageMaker::Model", "AWS::ApplicationAutoScaling::ScalableTarget"
SIMULATE = (
    "simulate",
    "--pattern",
    "step",
    "--low",
    "1",
    "--high",
    "9",
    "--throughput",
    "5",
    "--template",
)
RECOMMEND = (
    *(
        "plan",
        "recommender",
        "request",
        "--job-name",
        "j",
        "--role-arn",
        "arn:aws:iam::123456789012:role/r",
    ),
    *("--model-name", "m", "--instance-type", "ml.m5.large", "-o", "request.json", "--template"),
)


def write(folder: Path, **resources: Any) -> Path:
    """Write an assembly whose template has only these sections."""
    read_assembly(b"", folder)
    path = folder / "Shop.template.json"
    path.write_text(json.dumps(resources), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ({"Resources": []}, "Resources: must be an object, got []"),
        ({"Resources": {"A": "x"}}, "Resources.A: must be an object, got 'x'"),
        ({"Resources": {"A": {"Type": 1}}}, "Resources.A.Type: must be a string, got 1"),
        (
            {"Resources": {"A": {"Type": "T", "Properties": 5}}},
            "A.Properties: must be an object, got 5",
        ),
        ({"Resources": {"A": {"Type": "T", "DependsOn": 5}}}, "A.DependsOn: must be a list, got 5"),
        ({"Parameters": {"P": "x"}}, "Parameters.P: must be an object, got 'x'"),
        ({"Conditions": 1}, "Conditions: must be an object, got 1"),
        (
            {"Resources": {"A": {"Type": MODEL, "Properties": {"PrimaryContainer": "x"}}}},
            "A: PrimaryContainer: must be an object, got 'x'",
        ),
    ],
)
def test_each_command_names_the_place(
    template: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A template with a value of another type is one line, and no traceback."""
    path = write(tmp_path, **template)
    commands: list[tuple[str, ...]] = [(*RECOMMEND, str(path))]
    if MODEL not in str(template):
        commands += [(*SIMULATE, str(path)), ("local", "up", str(tmp_path))]
    for command in commands:
        assert main(command) != 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        assert reason in line


def test_properties_of_another_form_are_named() -> None:
    """A function without a value may be in the place of a string or a number, but not of a list."""
    body = {
        "Resources": {"A": {"Type": TARGET, "Properties": {"MinCapacity": "x", "MaxCapacity": 1}}}
    }
    with pytest.raises(TemplateError, match=r"Shop/A: MinCapacity: must be a number, got 'x'"):
        SynthesizedStack("Shop", Template(body)).properties("A")
    with pytest.raises(
        TemplateError, match=r"Shop/A: ScheduledActions\[0\].Schedule: must be given, got None"
    ):
        check_shape({"ScheduledActions": [{}]}, PROPERTIES[TARGET], "Shop/A", "add it")
    check_shape({"MinCapacity": {"Ref": "P"}, "MaxCapacity": "4"}, PROPERTIES[TARGET], "A", "")
    with pytest.raises(TemplateError, match=r"A: Containers: must be a list"):
        check_shape({"Containers": {"Ref": "P"}}, PROPERTIES[MODEL], "A", "")


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ({"Condition": "C"}, "refers to itself"),
        ({"Fn::Not": []}, "wrong form"),
        ({"Fn::Equals": ["a"]}, "wrong form"),
        ({"Fn::Equals": [{"Fn::Select": []}, "a"]}, "wrong form"),
        ({"Fn::Equals": [{"Fn::Split": 5}, "a"]}, "wrong form"),
    ],
)
def test_conditions_of_another_form_are_errors(condition: Any, reason: str) -> None:
    """So are intrinsic functions in them, and conditions in a circle."""
    stack = SynthesizedStack("Shop", Template({"Conditions": {"C": condition}}))
    with pytest.raises(TemplateError, match=reason):
        stack._placeholders.evaluator.condition("C")


def test_stacks_and_stages_in_a_circle_are_errors(tmp_path: Path) -> None:
    """A nested stack, a stage and a dependency may name themselves."""
    nested = {
        "Type": "AWS::CloudFormation::Stack",
        "Metadata": {"aws:asset:path": "Shop.template.json"},
    }
    write(tmp_path, Resources={"A": nested})
    with pytest.raises(TemplateError, match="contains itself"):
        list(Assembly(tmp_path).all_stacks())
    stage = {
        "type": "cdk:cloud-assembly",
        "properties": {"directoryName": "."},
        "dependencies": ["S", "no"],
    }
    (tmp_path / "manifest.json").write_text(
        json.dumps({"artifacts": {"S": stage}}), encoding="utf-8"
    )
    with pytest.raises(TemplateError, match="contains itself"):
        list(Assembly(tmp_path).all_stacks())


def test_artifacts_without_a_file_are_errors(tmp_path: Path) -> None:
    """A stack without a template is named."""
    read_assembly(b"", tmp_path)
    manifest = json.loads(json.dumps(DOCUMENTS["manifest.json"]))
    del manifest["artifacts"]["Shop"]["properties"]["templateFile"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(TemplateError, match="Shop has no templateFile; run `npx cdk synth`"):
        list(Assembly(tmp_path).all_stacks())
