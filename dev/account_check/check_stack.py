"""The base of the stacks: a repository of one small Python model."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import InstanceType, ModelSource, TritonEndpoint, TritonModelRepository

_CPU = InstanceType.of("ml.m5.large")
_CONFIG = """name: "add"
backend: "python"
max_batch_size: 8
input {{ name: "x" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "y" data_type: TYPE_FP32 dims: 1 }}
instance_group {{ kind: {kind} }}
"""
_MODEL = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        if {fails}:
            raise RuntimeError("account check: this release cannot start")

    def execute(self, requests):
        return [
            self.add(pb_utils.get_input_tensor_by_name(each, "x").as_numpy())
            for each in requests
        ]

    def add(self, x):
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x + {constant}.0)])
"""


class CheckStack(cdk.Stack):
    """A stack with a repository of one small Python model, which differs between releases."""

    def __init__(self, scope: Construct, id: str, *, models: Path, release: int) -> None:
        super().__init__(scope, id)
        cdk.Tags.of(self).add("constructs-triton", "account-check")
        self.models = models
        self.release = release
        self.add_endpoints()

    def add_endpoints(self) -> None:
        """Add what the question is about."""
        raise NotImplementedError

    def repository(
        self, *, constant: int = 0, fails: bool = False, kind: str = "KIND_CPU"
    ) -> TritonModelRepository:
        """The model repository; a changed constant changes the archive."""
        return self.repository_of(
            "add", _CONFIG.format(kind=kind), _MODEL.format(constant=constant, fails=fails)
        )

    def repository_of(self, name: str, config: str, model: str) -> TritonModelRepository:
        """A repository of one Python model."""
        folder = self.models / sha256(f"{config}{model}".encode()).hexdigest()[:8]
        version = folder / name / "1"
        version.mkdir(parents=True, exist_ok=True)
        (folder / name / "config.pbtxt").write_text(config)
        (version / "model.py").write_text(model)
        source = ModelSource.from_directory(folder)
        return TritonModelRepository(
            self, "Models", source=source, removal_policy=cdk.RemovalPolicy.DESTROY
        )

    def endpoint(
        self, id: str, repository: TritonModelRepository, **options: Any
    ) -> TritonEndpoint:
        """An endpoint of the model, with its name as an output. Nothing verifies its updates."""
        endpoint = TritonEndpoint(
            self,
            id,
            model_repository=repository,
            model="add",
            verify_update=False,
            **{"instance_type": _CPU, **options},
        )
        cdk.CfnOutput(
            self, "Name" if id == "Endpoint" else f"{id}Name", value=endpoint.endpoint_name
        )
        return endpoint
