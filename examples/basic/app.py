"""One model on one instance: the smallest app."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import InstanceType, ModelSource, TritonEndpoint, TritonModelRepository

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class BasicStack(cdk.Stack):
    """A model on a CPU that rates the sentiment of English text."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "catalog")
        )
        endpoint = TritonEndpoint(
            self,
            "Sentiment",
            model_repository=repository,
            model="sentiment",
            instance_type=InstanceType.of("ml.c6i.xlarge"),
        )
        endpoint.export_outputs()


app = cdk.App()
BasicStack(app, "Basic")
app.synth()
