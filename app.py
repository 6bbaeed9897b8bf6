"""The demo: an ensemble on a GPU, and many models that share a GPU.

``npx cdk synth`` writes the templates; ``make demo`` runs the first endpoint on your machine.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

REPOSITORIES = Path(__file__).parent / "assets" / "model_repositories"


class DemoStack(cdk.Stack):
    """An ensemble that reads handwritten digits, and several small models that share one endpoint."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, description="NVIDIA Triton on SageMaker, by constructs_triton")

        digits = TritonModelRepository(
            self, "DigitsModels", source=ModelSource.from_directory(REPOSITORIES / "digits")
        )
        TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=digits,
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            endpoint_name="digits",
        )

        catalog = TritonModelRepository(
            self, "CatalogModels", source=ModelSource.from_directory(REPOSITORIES / "catalog")
        )
        endpoint = TritonMultiModelEndpoint(
            self,
            "Catalog",
            model_repository=catalog,
            instance_type=InstanceType.of("ml.g5.xlarge"),
            endpoint_name="catalog",
        )
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5).scale_on_gpu_utilization(
            "Gpu",
            target_utilization_percent=60,
            scale_in_cooldown=cdk.Duration.seconds(600),
            scale_out_cooldown=cdk.Duration.seconds(200),
        )


app = cdk.App()
DemoStack(app, "TritonDemo")
app.synth()
