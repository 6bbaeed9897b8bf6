"""Apps, stacks and repositories that the tests of the constructs are made of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from constructs_triton import ModelSource, TritonModelRepository

ENVIRONMENT = cdk.Environment(account="123456789012", region="eu-west-1")
STRICT = {"@aws-cdk/core:validateAgainstDefaultRules": True}

_CONFIG = """name: "{name}"
backend: "python"
max_batch_size: 8
input {{ name: "x" data_type: TYPE_FP32 dims: 4 }}
output {{ name: "y" data_type: TYPE_FP32 dims: 4 }}
instance_group {{ kind: KIND_CPU }}
"""
_ENSEMBLE = """name: "{name}"
platform: "ensemble"
max_batch_size: 8
input {{ name: "x" data_type: TYPE_FP32 dims: 4 }}
output {{ name: "y" data_type: TYPE_FP32 dims: 4 }}
ensemble_scheduling {{
  step {{ model_name: "{first}" model_version: -1
         input_map {{ key: "x" value: "x" }} output_map {{ key: "y" value: "z" }} }}
  step {{ model_name: "{second}" model_version: -1
         input_map {{ key: "x" value: "z" }} output_map {{ key: "y" value: "y" }} }}
}}
"""
_MODEL = """class TritonPythonModel:
    def execute(self, requests):
        raise NotImplementedError
"""


def write_model(directory: Path, name: str, *, config: str | None = None) -> None:
    """A Python backend model that Triton would load."""
    folder = directory / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(_CONFIG.format(name=name) if config is None else config)
    (folder / "1" / "model.py").write_text(_MODEL)


def write_repository(directory: Path) -> Path:
    """An ensemble ``pipeline`` of ``scale`` and ``shift``, and ``other``, which belongs to none."""
    for name in ("scale", "shift", "other"):
        write_model(directory, name)
    (directory / "pipeline" / "1").mkdir(parents=True)
    config = _ENSEMBLE.format(name="pipeline", first="scale", second="shift")
    (directory / "pipeline" / "config.pbtxt").write_text(config)
    return directory


def make_app(outdir: Path | None = None, **context: Any) -> cdk.App:
    """An app in which findings of CDK's template validation are errors."""
    return cdk.App(outdir=None if outdir is None else str(outdir), context={**STRICT, **context})


def make_stack(environment: cdk.Environment | None = ENVIRONMENT) -> cdk.Stack:
    """A stack of its own app; ``None`` makes it environment-agnostic."""
    return cdk.Stack(make_app(), "Test", env=environment)


def add_repository(scope: cdk.Stack, path: Path, id: str = "Models", **props: Any) -> TritonModelRepository:
    return TritonModelRepository(scope, id, source=ModelSource.from_directory(path), **props)


def synthesize(stack: cdk.Stack) -> dict[str, Any]:
    """The template, through all that a real synth does."""
    app = stack.node.root
    assert isinstance(app, cdk.App)
    template: dict[str, Any] = app.synth().get_stack_artifact(stack.artifact_id).template
    return template


def resources(template: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Logical id to resource, of one CloudFormation type."""
    return {name: each for name, each in template.get("Resources", {}).items() if each["Type"] == kind}


def only(template: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The properties of the only resource of a type."""
    (resource,) = resources(template, kind).values()
    properties: dict[str, Any] = resource["Properties"]
    return properties


def statements(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """All policy statements that have a name, by it."""
    return {
        statement["Sid"]: statement
        for policy in resources(template, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "Sid" in statement
    }


def flat(value: Any) -> str:
    """A value with its intrinsics as one text, to search in."""
    match value:
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(flat(part) for part in parts)
        case {"Ref": name} | {"Fn::Sub": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::FindInMap": [mapping, key, second]}:
            return f"<{mapping}[{flat(key)}][{flat(second)}]>"
        case _:
            return str(value)


def normalise(template: Mapping[str, Any]) -> Any:
    """The template without what changes with the CDK's release or the content of the models."""
    kept = {key: value for key, value in template.items() if key not in ("Parameters", "Rules")}
    for name, rows in kept.get("Mappings", {}).items():
        kept["Mappings"] = {**kept["Mappings"], name: f"{len(rows)} regions"}
    text = re.sub(r"[0-9a-f]{64}", "<digest>", json.dumps(kept))
    text = re.sub(r'"SizeBytes": "\d+"', '"SizeBytes": "<bytes>"', text)
    return json.loads(re.sub(r'"python3\.\d+"', '"<newest python>"', text))
