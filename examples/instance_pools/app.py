"""An endpoint that starts on the first of three instance types that has capacity.

Scaling follows the busiest type: each has its own number of requests that an instance processes at
a time, from a load test.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_triton import (
    InstancePool,
    InstanceType,
    ModelSource,
    TritonDashboard,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class InstancePoolsStack(cdk.Stack):
    """Handwritten digits on the GPUs that are there."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        endpoint = TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(MODELS / "digits")
            ),
            ensemble="digits",
            # In order of priority.
            instance_pools=[
                InstancePool(InstanceType.of("ml.g6.2xlarge")),
                InstancePool(InstanceType.of("ml.g5.2xlarge")),
                InstancePool(InstanceType.of("ml.g4dn.2xlarge")),
            ],
            # For all three types together.
            variant_instance_provision_timeout=cdk.Duration.minutes(15),
            # A change of the pools is a change of the instance type, which a scaled variant
            # refuses.
            scaling_guard=True,
        )
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_concurrent_requests_by_type(
            "Load",
            max_concurrent_requests={
                "ml.g6.2xlarge": 12,
                "ml.g5.2xlarge": 16,
                "ml.g4dn.2xlarge": 7,
            },
        )
        operators = sns.Topic(self, "Operators", enforce_ssl=True)
        for alarm in count.missing_data_alarms:
            alarm.add_alarm_action(actions.SnsAction(operators))
        TritonDashboard(self, "Dashboard", endpoints=[endpoint])


app = cdk.App()
InstancePoolsStack(app, "InstancePools")
app.synth()
