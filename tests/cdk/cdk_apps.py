"""The apps, stacks and model repositories of the construct tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from constructs import IConstruct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton.cdk.endpoint.imported_endpoint import ImportedTritonEndpoint
from constructs_triton.cdk.repository.loaded_models import LocalModels
from constructs_triton.cdk.repository.model_repository import contents_of

ENVIRONMENT = cdk.Environment(account="123456789012", region="eu-west-1")
STRICT = {"@aws-cdk/core:validateAgainstDefaultRules": True}
GPU = InstanceType.of("ml.g5.xlarge")
CPU = InstanceType.of("ml.c5.xlarge")

_CONFIG = """name: "{name}"
backend: "python"
max_batch_size: 8
input {{ name: "x" data_type: TYPE_FP32 dims: 4 }}
output {{ name: "y" data_type: TYPE_FP32 dims: 4 }}
instance_group {{ {group} }}
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


def write_model(
    directory: Path, name: str, *, config: str | None = None, group: str = "kind: KIND_CPU"
) -> None:
    """Write a Python backend model that Triton would load."""
    folder = directory / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(
        _CONFIG.format(name=name, group=group) if config is None else config
    )
    (folder / "1" / "model.py").write_text(_MODEL)


def write_repository(directory: Path) -> Path:
    """Write an ensemble ``pipeline`` of ``scale`` and ``shift``, and a separate model ``other``."""
    for name in ("scale", "shift", "other"):
        write_model(directory, name)
    (directory / "pipeline" / "1").mkdir(parents=True)
    config = _ENSEMBLE.format(name="pipeline", first="scale", second="shift")
    (directory / "pipeline" / "config.pbtxt").write_text(config)
    return directory


def make_app(outdir: Path | None = None, **context: Any) -> cdk.App:
    """Return an app in which findings of CDK's template validation are errors."""
    return cdk.App(outdir=None if outdir is None else str(outdir), context={**STRICT, **context})


def make_stack(environment: cdk.Environment | None = ENVIRONMENT) -> cdk.Stack:
    """Return a stack in a new app; with ``None`` it is environment-agnostic."""
    return cdk.Stack(make_app(), "Test", env=environment)


def add_repository(
    scope: cdk.Stack, path: Path, id: str = "Models", **props: Any
) -> TritonModelRepository:
    return TritonModelRepository(scope, id, source=ModelSource.from_directory(path), **props)


def archive_key(repository: TritonModelRepository, model: str) -> str:
    """The object key of a model's archive, which becomes an asset of the repository's stack."""
    return contents_of(repository).locate(model, repository).url.rsplit("/", 1)[1]


def archived_models(repository: TritonModelRepository, model: str) -> tuple[str, ...]:
    """The models in the archive of a model, itself first."""
    loaded, folder = contents_of(repository).catalog.find(model)
    assert isinstance(loaded, LocalModels)
    return loaded.contents_of(folder)


def add_endpoint(
    scope: cdk.Stack,
    models: Path | TritonModelRepository,
    id: str = "Endpoint",
    *,
    model: str | None = "model",
    **props: Any,
) -> TritonEndpoint:
    """Add an endpoint of one model, on one ``ml.g5.xlarge`` unless ``props`` says otherwise.

    A model ``model`` is written if the folder has none.
    """
    if model == "model" and isinstance(models, Path) and not (models / "model").exists():
        write_model(models, "model")
    return TritonEndpoint(scope, id, model=model, **_with_repository(scope, models, id, props))


def add_ensemble(
    scope: cdk.Stack, models: Path | TritonModelRepository, id: str = "Endpoint", **props: Any
) -> TritonEnsembleEndpoint:
    """Add an endpoint of the ensemble ``pipeline``, as ``add_endpoint`` does."""
    options = _with_repository(scope, models, id, {"ensemble": "pipeline", **props})
    return TritonEnsembleEndpoint(scope, id, **options)


def add_many(
    scope: cdk.Stack, models: Path | TritonModelRepository, id: str = "Endpoint", **props: Any
) -> TritonMultiModelEndpoint:
    """Add an endpoint of all models of a repository, as ``add_endpoint`` does."""
    return TritonMultiModelEndpoint(scope, id, **_with_repository(scope, models, id, props))


def import_endpoint(
    stack: cdk.Stack, construct: Any = TritonEndpoint, id: str = "Endpoint", **attributes: Any
) -> ImportedTritonEndpoint:
    """The endpoint ``bert`` of another app, unless ``attributes`` says otherwise."""
    given = {"endpoint_name": "bert", **attributes}
    found: ImportedTritonEndpoint = construct.from_endpoint_attributes(stack, id, **given)
    return found


def _with_repository(
    scope: cdk.Stack, models: Path | TritonModelRepository, id: str, props: Mapping[str, Any]
) -> dict[str, Any]:
    """The properties of an endpoint; a folder of models becomes a repository beside it."""
    if isinstance(models, Path):
        models = add_repository(scope, models, f"{id}Models")
    return {"model_repository": models, "instance_type": GPU, **props}


def primary_container(template: Mapping[str, Any]) -> dict[str, Any]:
    """The container of the only model."""
    found: dict[str, Any] = only(template, "AWS::SageMaker::Model")["PrimaryContainer"]
    return found


def only_variant(template: Mapping[str, Any]) -> dict[str, Any]:
    """The only production variant of the only endpoint configuration."""
    (found,) = only(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    return dict(found)


def synthesize(stack: cdk.Stack) -> dict[str, Any]:
    """Return the template after a full synthesis."""
    app = stack.node.root
    assert isinstance(app, cdk.App)
    template: dict[str, Any] = app.synth().get_stack_artifact(stack.artifact_id).template
    return template


def resources(template: Mapping[str, Any], resource_type: str) -> dict[str, Any]:
    """Return the resources of one CloudFormation type by logical ID."""
    return {
        name: resource
        for name, resource in template.get("Resources", {}).items()
        if resource["Type"] == resource_type
    }


def only(template: Mapping[str, Any], resource_type: str) -> dict[str, Any]:
    """Return the properties of the only resource of a type."""
    (resource,) = resources(template, resource_type).values()
    properties: dict[str, Any] = resource["Properties"]
    return properties


def policies(template: Mapping[str, Any]) -> dict[str, Any]:
    """Logical id to resource, of inline and managed policies."""
    return {
        **resources(template, "AWS::IAM::Policy"),
        **resources(template, "AWS::IAM::ManagedPolicy"),
    }


def statement_list(template: Mapping[str, Any], of: str = "") -> list[dict[str, Any]]:
    """The statements of all policies whose logical id contains a text."""
    found: list[dict[str, Any]] = []
    for name, policy in policies(template).items():
        if of in name:
            found += policy["Properties"]["PolicyDocument"]["Statement"]
    return found


def statements(template: Mapping[str, Any], of: str = "") -> dict[str, dict[str, Any]]:
    """The same statements by Sid, without those that have none."""
    found = statement_list(template, of)
    return {statement["Sid"]: statement for statement in found if "Sid" in statement}


def flat(value: Any) -> str:
    """Return a value with its intrinsic functions as one string, to search in."""
    match value:
        case {"Fn::Join": [separator, [*parts]]}:
            return str(separator).join(flat(part) for part in parts)
        case {"Ref": name} | {"Fn::Sub": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::FindInMap": [mapping, key, second]}:
            return f"<{mapping}[{flat(key)}][{flat(second)}]>"
        case _:
            return str(value)


def flattened(value: Any) -> Any:
    """Return a value in which each intrinsic function that ``flat`` knows is one string."""
    match value:
        case list():
            return [flattened(item) for item in value]
        case (
            {"Fn::Join": [_, [*_]]}
            | {"Ref": _}
            | {"Fn::Sub": str()}
            | {"Fn::GetAtt": _}
            | {"Fn::FindInMap": _}
        ):
            return flat(value)
        case dict():
            return {name: flattened(member) for name, member in value.items()}
        case _:
            return value


def warnings(root: IConstruct) -> list[str]:
    """Return the warnings of a construct and of those in it."""
    found = []
    for construct in root.node.find_all():
        for entry in construct.node.metadata:
            if entry.type == "aws:cdk:warning":
                found.append(str(entry.data))
    return found
