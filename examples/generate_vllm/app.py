"""A language model of the vLLM backend on one GPU, called as the decoder of `examples/generate`.

The image is your own, built from the `Dockerfile`; README.md has the commands. It does not run on
your machine: the bundled server has no vLLM backend.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class GenerateVllmStack(cdk.Stack):
    """An endpoint that continues a text with a model of a hub,
    for InvokeEndpointWithResponseStream.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        images = ecr.Repository.from_repository_name(self, "Images", "triton-vllm")
        endpoint = TritonEndpoint(
            self,
            "Chat",
            # `chat/1/model.json` has the arguments of vLLM's engine, which the checks read.
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(MODELS / "vllm")
            ),
            image=TritonImage.from_ecr_repository(images, "26.05", triton_version="26.05"),
            environment=TritonEnvironment(inference_type="generate_stream"),
            # 24 GB of GPU memory; vLLM uses 90 percent of it for weights and the KV cache.
            instance_type=InstanceType.of("ml.g6.xlarge"),
        )
        # A stream occupies the model for seconds, so the number of requests per minute says little.
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
        count.scale_on_concurrent_requests("Streams", target_concurrent_requests=16)
        cdk.CfnOutput(self, "Endpoint", value=endpoint.endpoint_name)


app = cdk.App()
GenerateVllmStack(app, "GenerateVllm")
app.synth()
