"""T5 on Triton's Python backend: a multi-model endpoint as in the article, and a single-model one.

`npx cdk synth` builds the models first where they are missing. Context: `-c models=<folder>` takes others,
`-c model=<name>` says which of them the single-model endpoint serves, by default the last by name.
"""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnvironment,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

#: Tensors travel between the server and a model's process through shared memory: what each process has at
#: its start, and the steps by which it grows. The image's own numbers are 16 and 1 MiB.
ENVIRONMENT = TritonEnvironment(
    shm_default_byte_size=cdk.Size.mebibytes(32),
    shm_growth_byte_size=cdk.Size.mebibytes(4),
    # Each instance of a model is a process of its own; this keeps its linear algebra from taking all cores.
    extra={"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
)


class T5(cdk.Stack):
    """The same models behind one endpoint for all, and behind one of their own."""

    def __init__(self, scope: Construct, id: str, *, models: Path, model: str | None) -> None:
        super().__init__(scope, id, description="T5 on Triton's Python backend")
        repository = TritonModelRepository(self, "Models", source=ModelSource.from_directory(models))
        TritonMultiModelEndpoint(
            self,
            "MultiModel",
            model_repository=repository,
            instance_type=InstanceType.of("ml.g5.2xlarge"),
            environment=ENVIRONMENT,
            endpoint_name="t5-multi-model",
        )
        TritonEndpoint(
            self,
            "SingleModel",
            model_repository=repository,
            model=model or max(repository.target_models),
            instance_type=InstanceType.of("ml.g5.2xlarge"),
            environment=ENVIRONMENT,
            endpoint_name="t5",
        )
        # The archives' names tell their content, so callers are told which one a name stands for.
        cdk.CfnOutput(self, "TargetModels", value=json.dumps(dict(repository.target_models)))


app = cdk.App()
folder = Path(app.node.try_get_context("models") or Path(__file__).parent / "models")
T5(app, "T5PythonBackend", models=folder, model=app.node.try_get_context("model"))
app.synth()
