"""A model that generates, whose tokens arrive as they are made: alone, and as a step of an
ensemble.

Run it on your machine after ``npx cdk synth``; ``ask.py`` prints the tokens:

    constructs-triton local up cdk.out
    python ask.py "Once upon a time"
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class GenerateStack(cdk.Stack):
    """Two endpoints that continue a text, for InvokeEndpointWithResponseStream."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "story")
        )
        # AWS's image with the package `tokenizers`. README.md has the commands that build and push
        # it.
        images = ecr.Repository.from_repository_name(self, "Images", "triton-tokenizers")
        image = TritonImage.from_ecr_repository(images, "26.05", triton_version="26.05")
        environment = TritonEnvironment(inference_type="generate_stream")
        TritonEndpoint(
            self,
            "Decoder",
            model_repository=repository,
            model="decoder",
            image=image,
            environment=environment,
            instance_type=InstanceType.of("ml.c6i.xlarge"),
            endpoint_name="decoder",
        )
        TritonEnsembleEndpoint(
            self,
            "Story",
            model_repository=repository,
            ensemble="story",
            image=image,
            environment=environment,
            instance_type=InstanceType.of("ml.c6i.xlarge"),
            endpoint_name="story",
        )


app = cdk.App()
GenerateStack(app, "Generate")
app.synth()
