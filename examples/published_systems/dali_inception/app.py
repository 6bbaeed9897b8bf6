"""DALI and Inception v3 as one ensemble: as in the article, on a newer image, and as a local twin.

``npx cdk synth`` writes four stacks; the newer image is used with ONNX Runtime and with TensorRT.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import repositories
from constructs import Construct
from repositories import Engine

from constructs_triton import (
    InstanceType,
    ModelSource,
    RepositoryCheck,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
)

ENSEMBLE = "ensemble_dali_inception"
# DALI decodes with 12 threads and two threads copy tensors, so the instance has 16 vCPUs.
THREADS = TritonEnvironment(thread_count=8, buffer_manager_thread_count=2)


class EnsembleStack(cdk.Stack):
    """One endpoint that accepts JPEG files and returns the probabilities of 1,001 classes."""

    def __init__(
        self, scope: Construct, id: str, *, models: Path, missing: list[str], **options: Any
    ) -> None:
        super().__init__(scope, id)
        # Without the model files the stacks can be synthesized, but not deployed.
        check = RepositoryCheck.on(acknowledge=["model-file-missing"] if missing else [])
        source = ModelSource.from_directory(models)
        repository = TritonModelRepository(self, "Models", source=source, check=check)
        TritonEnsembleEndpoint(
            self,
            "Endpoint",
            model_repository=repository,
            ensemble=ENSEMBLE,
            environment=THREADS,
            **options,
        )
        if missing:
            cdk.Annotations.of(self).add_warning_v2(
                "published-systems:model-files-missing",
                f"no {', '.join(missing)}: make them first, see the README",
            )


app = cdk.App()
gpu = InstanceType.of("ml.g4dn.4xlarge")
EnsembleStack(
    app,
    "DaliInception",
    models=repositories.ARTICLE,
    missing=repositories.missing_article_files(),
    # The last image with the TensorFlow backend.
    image=TritonImage.dlc("24.09"),
    instance_type=gpu,
    endpoint_name="dali-inception",
)
ENGINES: tuple[Engine, ...] = ("onnx", "tensorrt")
for engine in ENGINES:
    EnsembleStack(
        app,
        f"DaliInception{engine.capitalize()}",
        models=repositories.write_modern(engine),
        missing=repositories.missing_modern_files(engine),
        instance_type=gpu,
        endpoint_name=f"dali-inception-{engine}",
    )
EnsembleStack(
    app,
    "DaliInceptionTwin",
    models=repositories.write_twin(),
    missing=[],
    instance_type=InstanceType.of("ml.c5.2xlarge"),
    endpoint_name="dali-inception-twin",
)
app.synth()
