"""An ensemble and its steps on one endpoint, which scales on GPU utilization."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class EnsembleStack(cdk.Stack):
    """Converts PNG files of handwritten digits to labels and probabilities."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "digits")
        )
        endpoint = TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=repository,
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            # The default model is set to the ensemble automatically; this is one of the other
            # settings.
            environment=TritonEnvironment(thread_count=8),
        )
        scaling = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        scaling.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)


app = cdk.App()
EnsembleStack(app, "Ensemble")
app.synth()
