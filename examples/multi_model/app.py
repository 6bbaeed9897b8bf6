"""Many models behind one endpoint, with the features that a shared endpoint needs.

Two scaling policies, alarms, a dashboard, callers that may call only some of the models, and
outputs with the names of the models.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnvironment,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class MultiModelStack(cdk.Stack):
    """Several small models that share GPUs."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.repository = TritonModelRepository(
            self,
            "Models",
            source=ModelSource.from_directory(MODELS / "catalog"),
            # Archives that the index has not listed for two weeks are no longer called.
            prune_after=cdk.Duration.days(14),
        )
        self.endpoint = TritonMultiModelEndpoint(
            self,
            "Catalog",
            model_repository=self.repository,
            instance_type=InstanceType.of("ml.g5.2xlarge"),
            initial_instance_count=2,
            environment=TritonEnvironment(model_load_gpu_limit=0.9),
        )
        self._scale()
        self._watch()
        self._let_in("Shop", ["sentiment"])
        self._let_in("Pumps", ["anomaly", "forecast"])
        cdk.CfnOutput(self, "IndexUrl", value=self.repository.index_url)
        self.endpoint.export_outputs(export_name_prefix="catalog")

    def _scale(self) -> None:
        scaling = self.endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=8)
        scaling.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
        scaling.scale_on_invocations_per_instance("Calls", max_requests_per_second=50)

    def _watch(self) -> None:
        on_call = sns.Topic(self, "OnCall", enforce_ssl=True)
        self.endpoint.add_alarms(
            actions=[actions.SnsAction(on_call)], model_latency_objective=cdk.Duration.millis(200)
        )
        self.endpoint.add_dashboard(model_latency_objective=cdk.Duration.millis(200))

    def _let_in(self, team: str, models: list[str]) -> None:
        role = iam.Role(
            self, f"{team}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")
        )
        self.endpoint.grant_invoke(role, target_models=models)


app = cdk.App()
MultiModelStack(app, "MultiModel")
app.synth()
