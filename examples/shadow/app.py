"""A shadow variant tests a newer image with real traffic.

The shadow variant receives copies of half of the requests. Its responses are not returned to
callers. Data capture stores them with the requests in a bucket, where you can compare them.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton import (
    DataCapture,
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonImage,
    TritonModelRepository,
    TritonVariant,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class ShadowStack(cdk.Stack):
    """An ensemble on one Triton release, and a shadow variant with the next release."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "digits")
        )
        captured = s3.Bucket(
            self, "Captured", block_public_access=s3.BlockPublicAccess.BLOCK_ALL, enforce_ssl=True
        )
        TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=repository,
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            image=TritonImage.dlc("25.09"),
            shadow_variant=TritonVariant(
                variant_name="next", image=TritonImage.dlc(), initial_variant_weight=0.5
            ),
            data_capture=DataCapture(bucket=captured),
        )


app = cdk.App()
ShadowStack(app, "Shadow")
app.synth()
