"""Writes small cloud assemblies, as `cdk synth` does for a SageMaker endpoint."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from constructs_triton_functions.model_sync.manifest import ListedArchive, Manifest
from constructs_triton_functions.model_sync.properties import SyncProperties
from triton_model_check.model_repository import ModelRepository, pack

BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
Files = Mapping[str, str]
#: What follows a model's name in the name of its archive.
_DIGEST = re.compile(r"(-[0-9a-f]{8})?\.tar\.gz$")

PYTHON_CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
#: Adds a constant, so that a response shows its model; some inputs make it crash, raise or hang.
ADDING_MODEL = """
import os, signal, time
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            self.answer(pb_utils.get_input_tensor_by_name(each, "X").as_numpy())
            for each in requests
        ]

    def answer(self, x):
        if x.size and x[0] == -1:
            os.kill(os.getpid(), signal.SIGSEGV)
        if x.size and x[0] == -2:
            os._exit(3)
        if x.size and x[0] == -3:
            raise ValueError("minus three")
        if x.size and x[0] == -4:
            time.sleep(600)
        y = pb_utils.Tensor("Y", (x + {constant}).astype(np.float32))
        return pb_utils.InferenceResponse([y])
"""
ENSEMBLE_CONFIG = """
platform: "ensemble"
max_batch_size: 0
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Z" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling {
  step { model_name: "first" model_version: -1
    input_map { key: "X" value: "X" } output_map { key: "Y" value: "M" } }
  step { model_name: "second" model_version: -1
    input_map { key: "X" value: "M" } output_map { key: "Y" value: "Z" } }
}
"""


def adding_model(constant: float, *, config: str = PYTHON_CONFIG) -> dict[str, str]:
    """The files of a Python model that adds a constant."""
    code = ADDING_MODEL.format(constant=constant)
    return {"config.pbtxt": config, "1/model.py": code}


def adding_ensemble(name: str, first: float, second: float) -> dict[str, str]:
    """The files of an ensemble of two models that add."""
    steps = {"first": adding_model(first), "second": adding_model(second)}
    files = {
        f"{step}/{path}": text for step, model in steps.items() for path, text in model.items()
    }
    return {**files, f"{name}/config.pbtxt": ENSEMBLE_CONFIG, f"{name}/1/.keep": ""}


def below(name: str, files: Files) -> dict[str, str]:
    """The files, one folder down."""
    return {f"{name}/{path}": text for path, text in files.items()}


def write_files(folder: Path, files: Files) -> Path:
    """The folder with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def write_archive(path: Path, files: Files) -> Path:
    """A ``.tar.gz`` of these files."""
    folder = write_files(path.parent / f".{path.name}.files", files)
    with tarfile.open(path, "w:gz") as tar:
        for child in sorted(folder.iterdir()):
            tar.add(child, arcname=child.name)
    return path


class AssemblyBuilder:
    """Collects the resources of one stack and writes the assembly."""

    def __init__(self, directory: Path, *, stack: str = "Demo") -> None:
        self.directory = directory
        self.stack = stack
        self.resources: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self.files: dict[str, Any] = {}
        directory.mkdir(parents=True, exist_ok=True)

    def asset(self, digest: str, files: Files) -> str:
        """Add an archive as a file asset; returns its key in the asset bucket."""
        key = f"{digest}.tar.gz"
        write_archive(self.directory / f"asset.{key}", files)
        self._add_file(digest, key)
        return key

    def _add_file(self, digest: str, key: str) -> None:
        self.files[digest] = {
            "source": {"path": f"asset.{key}", "packaging": "file"},
            "destinations": {
                "current_account-current_region": {"bucketName": BUCKET, "objectKey": key}
            },
        }

    def single_model(self, name: str, key: str, environment: Files | None = None) -> str:
        """Add a model of one archive; returns its logical id."""
        url = {"Fn::Sub": f"s3://{BUCKET}/{key}"}
        self._model(name, {"ModelDataUrl": url, "Environment": dict(environment or {})})
        return name

    def multi_model(self, name: str, keys: Files, **container: Any) -> str:
        """Add a multi-model container with the archives that a custom resource copies;
        returns its id.
        """
        self.resources[f"{name}Bucket"] = {"Type": "AWS::S3::Bucket"}
        bucket = {"Ref": f"{name}Bucket"}
        listed = [
            ListedArchive(_DIGEST.sub("", target), key, target) for target, key in keys.items()
        ]
        manifest = Manifest.of(listed)
        list_key = f"{manifest.digest}.json"
        (self.directory / f"asset.{list_key}").write_text(manifest.to_json())
        self._add_file(manifest.digest, list_key)
        properties = SyncProperties(
            BUCKET, list_key, manifest.digest, "", "models/"
        ).to_cloudformation()
        self.resources[f"{name}Sync"] = {
            "Type": "Custom::TritonModelSync",
            "Properties": {
                **properties,
                "ServiceToken": {"Fn::GetAtt": ["Handler", "Arn"]},
                "SourceBucket": {"Fn::Sub": BUCKET},
                "DestinationBucket": bucket,
            },
        }
        url = {"Fn::Join": ["", ["s3://", bucket, "/models/"]]}
        environment = {
            "SAGEMAKER_TRITON_PING_MODE": "live",
            "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        }
        container = {
            "Mode": "MultiModel",
            "ModelDataUrl": url,
            "Environment": environment,
            **container,
        }
        self._model(name, container)
        return name

    def _model(self, name: str, container: Mapping[str, Any]) -> None:
        image = (
            "${Account}.dkr.ecr.${AWS::Region}.${AWS::URLSuffix}/sagemaker-tritonserver:26.05-py3"
        )
        account = {"Fn::FindInMap": ["TritonAccounts", {"Ref": "AWS::Region"}, "account"]}
        container = {"Image": {"Fn::Sub": [image, {"Account": account}]}, **container}
        self.resources[name] = {
            "Type": "AWS::SageMaker::Model",
            "Properties": {"PrimaryContainer": container},
        }

    def endpoint(
        self,
        logical_id: str,
        variants: Mapping[str, tuple[str, float]],
        *,
        shadows: Mapping[str, tuple[str, float]] | None = None,
        name: str | None = None,
        **settings: Any,
    ) -> None:
        """Add an endpoint whose variants are models with a weight;
        ``settings`` are its configuration's.
        """
        config: dict[str, Any] = {"ProductionVariants": _variants(variants), **settings}
        if shadows:
            config["ShadowProductionVariants"] = _variants(shadows)
        self.resources[f"{logical_id}Config"] = {
            "Type": "AWS::SageMaker::EndpointConfig",
            "Properties": config,
        }
        properties: dict[str, Any] = {
            "EndpointConfigName": {"Fn::GetAtt": [f"{logical_id}Config", "EndpointConfigName"]}
        }
        if name is not None:
            properties["EndpointName"] = name
        self.resources[logical_id] = {"Type": "AWS::SageMaker::Endpoint", "Properties": properties}

    def serve(
        self,
        logical_id: str,
        files: Files,
        name: str | None = None,
        environment: Files | None = None,
    ) -> AssemblyBuilder:
        """Add an endpoint of one model."""
        model = self.single_model(
            f"{logical_id}Model", self.asset(logical_id.lower(), files), environment
        )
        self.endpoint(logical_id, {"AllTraffic": (model, 1)}, name=name)
        return self

    def serve_packed(self, repository: ModelRepository, model: str) -> AssemblyBuilder:
        """Add an endpoint called like the model, which is packed with the models that it needs."""
        key = f"{model}.tar.gz"
        pack(repository, repository.closure(model), self.directory, archive_name=f"asset.{key}")
        self._add_file(model, key)
        logical_id = model.capitalize()
        self.single_model(f"{logical_id}Model", key, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": model})
        self.endpoint(logical_id, {"AllTraffic": (f"{logical_id}Model", 1)}, name=model)
        return self

    def template(self) -> dict[str, Any]:
        """The stack's template."""
        mapping = {"us-east-1": {"account": "763104351884"}}
        return {"Resources": self.resources, "Mappings": {"TritonAccounts": mapping}, **self.extra}

    def write(self) -> Path:
        """Write template, assets and manifest; returns the assembly's folder."""
        stack = {
            "type": "aws:cloudformation:stack",
            "environment": "aws://unknown-account/unknown-region",
            "properties": {"templateFile": f"{self.stack}.template.json"},
            "displayName": self.stack,
        }
        assets = {"type": "cdk:asset-manifest", "properties": {"file": f"{self.stack}.assets.json"}}
        self._write(
            "manifest.json", {"artifacts": {self.stack: stack, f"{self.stack}.assets": assets}}
        )
        self._write(f"{self.stack}.template.json", self.template())
        self._write(f"{self.stack}.assets.json", {"files": self.files})
        return self.directory

    def _write(self, name: str, content: Any) -> None:
        (self.directory / name).write_text(json.dumps(content))


def _variants(variants: Mapping[str, tuple[str, float]]) -> Sequence[Mapping[str, Any]]:
    return [
        {
            "VariantName": name,
            "ModelName": {"Fn::GetAtt": [model, "ModelName"]},
            "InitialVariantWeight": weight,
            "InstanceType": "ml.g5.xlarge",
        }
        for name, (model, weight) in variants.items()
    ]
