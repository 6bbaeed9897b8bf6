"""The stack of the tests of a scaled fleet: its scaling is removed, and its endpoint is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct
from files_app import add_single, fail_after, write_models
from files_states import State as Content

from constructs_triton import InstanceType, ModelSource, TritonModelRepository

STACK = "Fleet"


@dataclass(frozen=True)
class FleetState:
    """What a deployment changes. The endpoint is called by the output ``SingleName``."""

    is_scaled: bool = True
    initial_instance_count: int = 1
    retains_counts: bool = False
    instance_type: str = "ml.g5.xlarge"
    label: int = 1
    removal_policy: cdk.RemovalPolicy | None = None
    is_broken: bool = False


class FleetStack(cdk.Stack):
    """An endpoint with a grant of the app's own, of models in a bucket that is retained."""

    def __init__(self, scope: Construct, id: str, *, models: Path, state: FleetState) -> None:
        super().__init__(scope, id)
        self.endpoint = add_single(
            self,
            TritonModelRepository(self, "Models", source=ModelSource.from_directory(models)),
            instance_type=InstanceType.of(state.instance_type),
            initial_instance_count=state.initial_instance_count,
            removal_policy=state.removal_policy,
        )
        if state.is_scaled:
            count = self.endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
            count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
        if state.retains_counts:
            self.endpoint.retain_instance_counts()
        if state.is_broken:
            fail_after(self.endpoint)
        s3.Bucket(self, "Labels").grant_read(self.endpoint)
        cdk.CfnOutput(self, "SingleName", value=self.endpoint.endpoint_name)


def synthesize(directory: Path, name: str, state: FleetState) -> Path:
    """Write the assembly of a state to a folder of its name below the directory."""
    models = write_models(directory / "models" / name, Content(label=state.label))
    app = cdk.App(outdir=str(directory / name), builtin_cloud_formation_validation=False)
    FleetStack(app, STACK, models=models, state=state)
    app.synth()
    return directory / name
