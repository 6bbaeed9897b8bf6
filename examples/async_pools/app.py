"""An asynchronous endpoint that starts from zero instances, on the first of two GPU types with
capacity.

Requests wait in the queue until an instance has started. Without a second type, a type without
capacity in the morning would leave them there.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_triton import (
    AsyncInferenceConfig,
    InstancePool,
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class AsyncPoolsStack(cdk.Stack):
    """Handwritten digits, read asynchronously on the GPUs that are there."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        bucket = s3.Bucket(
            self, "Queue", block_public_access=s3.BlockPublicAccess.BLOCK_ALL, enforce_ssl=True
        )
        endpoint = TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(MODELS / "digits")
            ),
            ensemble="digits",
            # In order of priority. Both have one GPU and the same driver.
            instance_pools=[
                InstancePool(InstanceType.of("ml.g6.xlarge")),
                InstancePool(InstanceType.of("ml.g5.xlarge")),
            ],
            variant_instance_provision_timeout=cdk.Duration.minutes(20),
            async_inference=AsyncInferenceConfig(
                bucket=bucket,
                success_topic=sns.Topic(self, "Answered", enforce_ssl=True),
                error_topic=sns.Topic(self, "Failed", enforce_ssl=True),
                # What the slower type processes at a time.
                max_concurrent_invocations_per_instance=4,
            ),
        )
        count = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=5)
        count.scale_on_backlog("Backlog", target_backlog_per_instance=5)


app = cdk.App()
AsyncPoolsStack(app, "AsyncPools")
app.synth()
