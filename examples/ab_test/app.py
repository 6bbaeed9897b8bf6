"""Two releases behind one endpoint: one receives 90 percent of the requests, the other 10 percent.

The variants differ in instance type and environment, and each scales separately. Metrics have the
variant's name, so a dashboard shows them side by side. Change the weights to shift traffic; the
instance counts stay.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnvironment,
    TritonModelRepository,
    TritonVariant,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class ABTestStack(cdk.Stack):
    """A classifier on its current instance type and on a newer one."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "digits")
        )
        endpoint = TritonEndpoint(
            self,
            "Classifier",
            model_repository=repository,
            model="classifier",
            instance_type=InstanceType.of("ml.g4dn.xlarge"),
            variants=[
                TritonVariant(variant_name="current", initial_variant_weight=9),
                TritonVariant(
                    variant_name="candidate",
                    instance_type=InstanceType.of("ml.g5.xlarge"),
                    environment=TritonEnvironment(thread_count=16),
                    initial_variant_weight=1,
                ),
            ],
        )
        for variant in endpoint.variants:
            scaling = variant.auto_scale_instance_count(min_capacity=1, max_capacity=4)
            scaling.scale_on_gpu_utilization("Gpu")
        endpoint.add_dashboard()


app = cdk.App()
ABTestStack(app, "ABTest")
app.synth()
