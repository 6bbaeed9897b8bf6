"""The stack of the update check's tests, synthesized once for each of its states."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct
from deploy_app import write_models

from constructs_triton import InstanceType, ModelSource, TritonEndpoint, TritonModelRepository

STACK = "Checked"


class CheckedStack(cdk.Stack):
    """An endpoint of one model, whose update is verified."""

    def __init__(self, scope: Construct, id: str, *, models: Path) -> None:
        super().__init__(scope, id)
        endpoint = TritonEndpoint(
            self,
            "Digits",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(models)
            ),
            model="alpha",
            instance_type=InstanceType.of("ml.c6i.large"),
            verify_update=True,
        )
        cdk.CfnOutput(self, "Name", value=endpoint.endpoint_name)


def synthesize(directory: Path) -> Path:
    """Write the assembly of each state to a folder of its name below the directory."""
    for constant, release in enumerate(("first", "second")):
        models = write_models(directory / "models" / release, (("alpha", constant),))
        app = cdk.App(outdir=str(directory / release), builtin_cloud_formation_validation=False)
        CheckedStack(app, STACK, models=models)
        app.synth()
    return directory
