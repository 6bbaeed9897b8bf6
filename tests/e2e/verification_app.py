"""The stack of the verification's tests, synthesized once for each of its states."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import numpy as np
from constructs import Construct
from deploy_app import write_models

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton_client.recorded_requests import (
    ExpectedOutput,
    RecordedRequest,
    RecordedRequests,
    RecordedTensor,
)

STACK = "Verified"


def record(path: Path, constant: int, target_model: str | None) -> Path:
    """Write a request to the model that adds ``constant``."""
    x = np.ones((1, 4), dtype=np.float32)
    expected = ExpectedOutput(RecordedTensor(x + constant, "FP32"), 1e-6, 1e-4)
    request = RecordedRequest(
        "ones", {"x": RecordedTensor(x, "FP32")}, {"y": expected}, target_model
    )
    RecordedRequests([request]).save(path)
    return path


class VerifiedStack(cdk.Stack):
    """An endpoint of one model and a multi-model endpoint, both verified."""

    def __init__(self, scope: Construct, id: str, *, models: Path, requests: Path) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(models)
        )
        instance_type = InstanceType.of("ml.c6i.large")
        TritonEndpoint(
            self,
            "Single",
            model_repository=repository,
            model="alpha",
            instance_type=instance_type,
            endpoint_name="single",
            verify_responses=requests / "single.json",
        )
        TritonMultiModelEndpoint(
            self,
            "Many",
            model_repository=repository,
            instance_type=instance_type,
            endpoint_name="many",
            verify_responses=requests / "many.json",
        )


def synthesize(directory: Path) -> Path:
    """Write the assembly of each state to a folder of its name below the directory."""
    for constant, state in enumerate(("first", "second"), start=1):
        models = write_models(directory / "models" / state, (("alpha", constant), ("beta", 5)))
        requests = directory / "requests" / state
        requests.mkdir(parents=True)
        record(requests / "single.json", constant, None)
        record(requests / "many.json", constant, "alpha")
        app = cdk.App(outdir=str(directory / state), builtin_cloud_formation_validation=False)
        VerifiedStack(app, STACK, models=models, requests=requests)
        app.synth()
    return directory
