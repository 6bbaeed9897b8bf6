"""Two ensembles, one for sentences and one for pictures, on one multi-model endpoint with a GPU.

`npx cdk synth` first builds models that are missing; `-c models=<folder>` uses other models.
"""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import InstanceType, ModelSource, TritonModelRepository, TritonMultiModelEndpoint


class MinilmEnsembles(cdk.Stack):
    """One endpoint with both ensembles; each is an archive that is loaded at its first request."""

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
        # The names of archives contain a digest, so this output maps model names to archives.
        cdk.CfnOutput(self, "TargetModels", value=json.dumps(dict(repository.target_models)))


app = cdk.App()
models = Path(app.node.try_get_context("models") or Path(__file__).parent / "models")
MinilmEnsembles(app, "MinilmEnsembles", models=models)
app.synth()
