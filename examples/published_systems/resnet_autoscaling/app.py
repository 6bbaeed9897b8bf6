"""ResNet-50 in PyTorch and TensorRT on one GPU multi-model endpoint that scales on GPU utilization.

``ResNet50`` is the system of the article. ``SmallNetwork`` is the same stack with a small network
that runs on any machine. Synthesize with ``npx cdk synth``.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import repositories
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    RepositoryCheck,
    TargetModelNaming,
    TritonDashboard,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)


class ResNetStack(cdk.Stack):
    """One endpoint, two models: ``resnet_pt_v0.tar.gz`` and ``resnet_trt_v0.tar.gz``."""

    def __init__(
        self, scope: Construct, id: str, *, models: dict[str, Path], endpoint_name: str
    ) -> None:
        super().__init__(scope, id)
        # The names contain a version, as in the article: change it by hand for new content.
        # Without the model files the stack can be synthesized, but not deployed.
        check = RepositoryCheck.on(acknowledge=["model-file-missing"])
        repository = TritonModelRepository(
            self, "Models", target_model_naming=TargetModelNaming.PLAIN, check=check
        )
        cdk.Annotations.of(repository).acknowledge_warning(
            "constructs-triton:target-model-plain-names", "a new version is a new name"
        )
        for name, path in models.items():
            repository.add_model(name, ModelSource.from_directory(path))
        endpoint = TritonMultiModelEndpoint(
            self,
            "Endpoint",
            model_repository=repository,
            instance_type=InstanceType.of("ml.g4dn.4xlarge"),
            initial_instance_count=2,
            endpoint_name=endpoint_name,
        )
        scaling = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
        scaling.scale_on_gpu_utilization(
            "GPUUtil",
            target_utilization_percent=60,
            scale_in_cooldown=cdk.Duration.seconds(600),
            scale_out_cooldown=cdk.Duration.seconds(200),
            policy_name="GPUUtil-ScalingPolicy",
        )
        TritonDashboard(self, "Dashboard", endpoints=[endpoint])


app = cdk.App()
resnet50 = ResNetStack(
    app, "ResNet50", models=repositories.write_resnet50(), endpoint_name="resnet-mme-gpu"
)
if missing := repositories.missing_model_files():
    cdk.Annotations.of(resnet50).add_warning_v2(
        "published-systems:model-files-missing",
        f"no model_files/{', model_files/'.join(missing)}: see the README",
    )
ResNetStack(
    app, "SmallNetwork", models=repositories.write_small_network(), endpoint_name="small-network"
)
app.synth()
