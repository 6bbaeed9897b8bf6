"""The same endpoint in a small and a large size, deployed one after the other by CDK Pipelines.

The archives are created once, when the pipeline synthesizes, and published to each account's asset
bucket.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import pipelines
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"
STAGING = cdk.Environment(account="111111111111", region="eu-west-1")
PRODUCTION = cdk.Environment(account="222222222222", region="eu-west-1")


class DigitsStage(cdk.Stage):
    """The whole application; differences between deployments are parameters."""

    def __init__(self, scope: Construct, id: str, *, instances: int, env: cdk.Environment) -> None:
        super().__init__(scope, id, env=env)
        stack = cdk.Stack(self, "Digits")
        repository = TritonModelRepository(
            stack, "Models", source=ModelSource.from_directory(MODELS / "digits")
        )
        TritonEnsembleEndpoint(
            stack,
            "Endpoint",
            model_repository=repository,
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            initial_instance_count=instances,
            endpoint_name="digits",
        )


class PipelineStack(cdk.Stack):
    """Synthesize, deploy to staging, wait for approval, deploy to production."""

    def __init__(self, scope: Construct, id: str, *, env: cdk.Environment) -> None:
        super().__init__(scope, id, env=env)
        source = pipelines.CodePipelineSource.connection(
            "example/digits",
            "main",
            connection_arn=self.format_arn(
                service="codestar-connections", resource="connection", resource_name="example"
            ),
        )
        synth = pipelines.ShellStep(
            "Synth",
            input=source,
            commands=["npm ci", "pip install constructs-triton", "npx cdk synth"],
        )
        pipeline = pipelines.CodePipeline(self, "Pipeline", synth=synth, cross_account_keys=True)
        pipeline.add_stage(DigitsStage(self, "Staging", instances=1, env=STAGING))
        pipeline.add_stage(
            DigitsStage(self, "Production", instances=4, env=PRODUCTION),
            pre=[pipelines.ManualApprovalStep("Approve")],
        )


app = cdk.App()
PipelineStack(app, "Pipeline", env=STAGING)
app.synth()
