"""Two ensembles, one for pictures and one for sentences, on one multi-model endpoint with a GPU.

`npx cdk synth` first builds models that are missing; `-c models=<folder>` uses other models. The
archives have the article's names, `model_tf_dali.tar.gz` and `model_trt_python.tar.gz`. With `-c
naming=content` the names contain a digest, so that SageMaker loads changed models again.
"""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    RepositoryCheck,
    TargetModelNaming,
    TritonImage,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

ARCHIVES = ("model_tf_dali", "model_trt_python")
NEED_FILES = ("model_tf_dali/dali", "model_tf_dali/inception_graphdef", "model_trt_python/bert-trt")


class MinilmEnsembles(cdk.Stack):
    """One endpoint with both ensembles; each is an archive that is loaded at its first request."""

    def __init__(
        self, scope: Construct, id: str, *, models: Path, naming: TargetModelNaming
    ) -> None:
        super().__init__(
            scope, id, description="Two Triton ensembles on one GPU multi-model endpoint"
        )
        # Without model.dali, model.graphdef and model.plan the stack can be synthesized, but not
        # deployed.
        check = RepositoryCheck.on(acknowledge=["model-file-missing"])
        repository = TritonModelRepository(self, "Models", target_model_naming=naming, check=check)
        if naming is TargetModelNaming.PLAIN:
            cdk.Annotations.of(repository).acknowledge_warning(
                "constructs-triton:target-model-plain-names", "the names are those of the article"
            )
        missing = [name for name in NEED_FILES if not list(models.glob(f"{name}/1/model.*"))]
        if missing:
            cdk.Annotations.of(self).add_warning_v2(
                "published-systems:model-files-missing",
                f"no model file in {', '.join(missing)}: see the README",
            )
        for name in ARCHIVES:
            repository.add_model(name, ModelSource.from_directory(models / name))
        endpoint = TritonMultiModelEndpoint(
            self,
            "Ensembles",
            model_repository=repository,
            # The last image with the TensorFlow backend.
            image=TritonImage.dlc("24.09"),
            instance_type=InstanceType.of("ml.g4dn.4xlarge"),
            endpoint_name="minilm-ensembles",
        )
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        # The names of the archives, by the names of the models.
        cdk.CfnOutput(self, "TargetModels", value=json.dumps(dict(repository.target_models)))


app = cdk.App()
models = Path(app.node.try_get_context("models") or Path(__file__).parent / "models")
naming = TargetModelNaming(app.node.try_get_context("naming") or "plain")
MinilmEnsembles(app, "MinilmEnsembles", models=models, naming=naming)
app.synth()
