"""Two ensembles, one for sentences and one for pictures, behind one endpoint that shares a GPU.

`npx cdk synth` builds the models first where they are missing; `-c models=<folder>` takes others.
"""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import InstanceType, ModelSource, TritonModelRepository, TritonMultiModelEndpoint


class MinilmEnsembles(cdk.Stack):
    """The repository's ensembles, each one an archive that is loaded when it is first asked for."""

    def __init__(self, scope: Construct, id: str, *, models: Path) -> None:
        super().__init__(scope, id, description="Two Triton ensembles on one GPU multi-model endpoint")
        repository = TritonModelRepository(self, "Models", source=ModelSource.from_directory(models))
        endpoint = TritonMultiModelEndpoint(
            self,
            "Ensembles",
            model_repository=repository,
            instance_type=InstanceType.of("ml.g4dn.4xlarge"),
            endpoint_name="minilm-ensembles",
        )
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        # The archives' names tell their content, so callers are told which one a name stands for.
        cdk.CfnOutput(self, "TargetModels", value=json.dumps(dict(repository.target_models)))


app = cdk.App()
models = Path(app.node.try_get_context("models") or Path(__file__).parent / "models")
MinilmEnsembles(app, "MinilmEnsembles", models=models)
app.synth()
