"""An asynchronous endpoint, which has no instances while there are no requests.

Callers put a request into S3, and a topic notifies them when the result is ready. The first request
waits until an instance has started, which takes minutes.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_triton import (
    AsyncInferenceConfig,
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class AsyncInferenceStack(cdk.Stack):
    """Handwritten digits, read asynchronously."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "digits")
        )
        bucket = s3.Bucket(
            self, "Queue", block_public_access=s3.BlockPublicAccess.BLOCK_ALL, enforce_ssl=True
        )
        endpoint = TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=repository,
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            async_inference=AsyncInferenceConfig(
                bucket=bucket,
                success_topic=sns.Topic(self, "Answered", enforce_ssl=True),
                error_topic=sns.Topic(self, "Failed", enforce_ssl=True),
                max_concurrent_invocations_per_instance=4,
            ),
        )
        scaling = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=5)
        scaling.scale_on_backlog("Backlog", target_backlog_per_instance=5)

        caller = iam.Role(self, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        endpoint.grant_invoke_async(caller)


app = cdk.App()
AsyncInferenceStack(app, "AsyncInference")
app.synth()
