"""The stack of the tests of models as files, synthesized once for each of its states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import Resource
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct
from deploy_app import CONFIG
from files_states import STACK, STATES, WEIGHTS_BYTES, State

from constructs_triton import (
    CompressionType,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

INSTANCE_TYPE = InstanceType.of("ml.g5.xlarge")
_MODEL = """from pathlib import Path

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        folder = Path(__file__).parent
        with (folder / "weights.bin").open("rb") as weights:
            self.added = weights.read(1)[0] + int((folder / "labels.txt").read_text())

    def execute(self, requests):
        return [
            self.answer(pb_utils.get_input_tensor_by_name(each, "x").as_numpy())
            for each in requests
        ]

    def answer(self, x):
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x + float(self.added))])
"""
_ENSEMBLE = """platform: "ensemble"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "z" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step {
    model_name: "adder" model_version: -1
    input_map { key: "x" value: "x" } output_map { key: "y" value: "y" }
  }
  step {
    model_name: "adder" model_version: -1
    input_map { key: "x" value: "y" } output_map { key: "y" value: "z" }
  }
}
"""


class FilesStack(cdk.Stack):
    """An endpoint of one model and one of an ensemble that has the model as a step,
    both as files.
    """

    def __init__(self, scope: Construct, id: str, *, models: Path, state: State) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self,
            "Models",
            source=ModelSource.from_directory(models),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        single = add_single(self, repository)
        twice = TritonEnsembleEndpoint(
            self,
            "Twice",
            model_repository=repository,
            ensemble="twice",
            instance_type=INSTANCE_TYPE,
            compression_type=CompressionType.NONE,
        )
        if state.is_broken:
            fail_after(single, twice)
        cdk.CfnOutput(self, "SingleName", value=single.endpoint_name)
        cdk.CfnOutput(self, "TwiceName", value=twice.endpoint_name)


def add_single(
    scope: cdk.Stack, repository: TritonModelRepository, **options: Any
) -> TritonEndpoint:
    """Add an endpoint of the model, which has its files in S3."""
    return TritonEndpoint(
        scope,
        "Single",
        model_repository=repository,
        model="adder",
        compression_type=CompressionType.NONE,
        **{"instance_type": INSTANCE_TYPE, **options},
    )


def fail_after(*endpoints: Resource) -> None:
    """Add a resource to the stack of the endpoints that cannot be created, after them."""
    broken = cloudwatch.CfnDashboard(
        cdk.Stack.of(endpoints[0]), "Broken", dashboard_body="not json"
    )
    broken.node.add_dependency(*endpoints)


def write_models(directory: Path, state: State) -> Path:
    """A model with a large file and a label, and an ensemble without a version folder."""
    (directory / "adder" / "1").mkdir(parents=True)
    (directory / "adder" / "config.pbtxt").write_text(CONFIG)
    (directory / "adder" / "1" / "model.py").write_text(_MODEL)
    (directory / "adder" / "1" / "labels.txt").write_text(str(state.label))
    (directory / "adder" / "1" / "weights.bin").write_bytes(bytes([state.weight]) * WEIGHTS_BYTES)
    (directory / "twice").mkdir()
    (directory / "twice" / "config.pbtxt").write_text(_ENSEMBLE)
    return directory


def synthesize(directory: Path, *names: str) -> Path:
    """Write the assembly of each state to a folder of its name below the directory."""
    for name in names:
        models = write_models(directory / "models" / name, STATES[name])
        app = cdk.App(outdir=str(directory / name), builtin_cloud_formation_validation=False)
        FilesStack(app, STACK, models=models, state=STATES[name])
        app.synth()
    return directory
