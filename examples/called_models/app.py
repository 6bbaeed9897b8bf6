"""A product of four models: a Python model, an ONNX model, an ensemble of both, and a model that
calls one.

``moderation`` calls ``scorer`` with business logic scripting (BLS). Its archive contains
``scorer``, which the server loads beside it. Run it on your machine after ``npx cdk synth``:

    constructs-triton local up cdk.out
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class ReviewsStack(cdk.Stack):
    """One endpoint scores reviews, the other one decides what is published."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "reviews")
        )
        self.review = TritonEnsembleEndpoint(
            self,
            "Review",
            model_repository=self.repository,
            ensemble="review",
            instance_type=InstanceType.of("ml.c6i.xlarge"),
            endpoint_name="review",
        )
        self.moderation = TritonEndpoint(
            self,
            "Moderation",
            model_repository=self.repository,
            model="moderation",
            instance_type=InstanceType.of("ml.c6i.xlarge"),
            endpoint_name="moderation",
        )
        for endpoint in (self.review, self.moderation):
            cdk.CfnOutput(self, f"{endpoint.node.id}LogGroup", value=endpoint.log_group_name)


app = cdk.App()
ReviewsStack(app, "Reviews")
app.synth()
