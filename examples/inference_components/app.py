"""Two ensembles with their own copies on one GPU instance, which stops while there are no requests."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonComponentEndpoint,
    TritonInferenceComponent,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class SharedGpusStack(cdk.Stack):
    """Reads handwritten digits and watches sensors, each with its own GPUs of an ml.g5.12xlarge."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        endpoint = TritonComponentEndpoint(
            self,
            "Shared",
            instance_type=InstanceType.of("ml.g5.12xlarge"),
            min_instance_count=0,
            max_instance_count=1,
        )
        for name in ("digits", "alerts"):
            self.add_component(endpoint, name)

    def add_component(self, endpoint: TritonComponentEndpoint, name: str) -> None:
        """Add an ensemble that has one of the four GPUs, and two while there are many requests."""
        source = ModelSource.from_directory(MODELS / name)
        component = TritonInferenceComponent(
            self,
            name.capitalize(),
            endpoint=endpoint,
            model_repository=TritonModelRepository(self, f"{name.capitalize()}Models", source=source),
            ensemble=name,
            # Not a limit: SageMaker only places a copy where this much is left.
            min_memory=cdk.Size.gibibytes(8),
            number_of_accelerator_devices=1,
        )
        # With a minimum of 0, a request to a sleeping component starts its first copy.
        scaling = component.auto_scale_copy_count(min_capacity=0, max_capacity=2)
        scaling.scale_on_concurrent_requests_per_copy("Requests", target_concurrent_requests=4)
        caller = iam.Role(
            self, f"{name.capitalize()}Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")
        )
        component.grant_invoke(caller)
        cdk.CfnOutput(self, f"{name.capitalize()}Component", value=component.inference_component_name)


app = cdk.App()
SharedGpusStack(app, "SharedGpus")
app.synth()
