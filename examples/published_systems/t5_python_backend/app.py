"""T5 on Triton's Python backend: a multi-model endpoint as in the article, and a single-model one.

`npx cdk synth` first builds models that are missing. `-c models=<folder>` uses other models, and
`-c model=<name>` selects the model of the single-model endpoint (default: the last by name).
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

#: Tensors are exchanged between the server and a model's process in shared memory. These are its
#: initial size per process and the size by which it grows; the defaults of the image are 16 MiB and
#: 1 MiB.
ENVIRONMENT = TritonEnvironment(
    shm_default_byte_size=cdk.Size.mebibytes(32),
    shm_growth_byte_size=cdk.Size.mebibytes(4),
    # Each instance of a model is a process; this limits the threads of its linear algebra.
    extra={"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
)


class T5(cdk.Stack):
    """A multi-model endpoint with all models, and a single-model endpoint with one of them."""

    def __init__(self, scope: Construct, id: str, *, models: Path, model: str | None) -> None:
        super().__init__(scope, id, description="T5 on Triton's Python backend")
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(models)
        )
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
        # The names of archives contain a digest, so this output maps model names to archives.
        cdk.CfnOutput(self, "TargetModels", value=json.dumps(dict(repository.target_models)))


app = cdk.App()
folder = Path(app.node.try_get_context("models") or Path(__file__).parent / "models")
T5(app, "T5PythonBackend", models=folder, model=app.node.try_get_context("model"))
app.synth()
