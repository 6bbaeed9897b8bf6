"""An endpoint that a notebook made, whose next model comes from this app.

The endpoint ``digits-2025-11-02`` keeps its name, its ARN and its instances. If a deployment fails,
it returns to the model that it had. The model of the app is on trial: when the stack is deleted,
the endpoint returns to the notebook's model. Without ``removal_policy``, it would go on with the
last model of the app.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class AdoptedStack(cdk.Stack):
    """An endpoint that exists already, with scaling and alarms of this app."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        endpoint = TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(MODELS / "digits")
            ),
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            initial_instance_count=2,
            endpoint_name="digits-2025-11-02",
            adopt_existing=True,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        count = endpoint.auto_scale_instance_count(min_capacity=2, max_capacity=6)
        count.scale_on_gpu_utilization("Gpu")
        operators = sns.Topic(self, "Operators", enforce_ssl=True)
        endpoint.add_alarms(actions=[actions.SnsAction(operators)])


app = cdk.App()
AdoptedStack(app, "Adopted")
app.synth()
