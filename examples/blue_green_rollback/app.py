"""A deployment that first receives a tenth of the traffic, and is rolled back if an alarm goes off.

The alarms monitor the endpoint that they roll back. The endpoint has a fixed name, so that the
alarms do not depend on it and are created first. The endpoint scales, and ``scaling_guard`` lets a
deployment change its instance type.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    CapacitySize,
    Deployment,
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class BlueGreenStack(cdk.Stack):
    """An endpoint whose next release is watched for a quarter of an hour."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "digits")
        )
        endpoint = TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=repository,
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            initial_instance_count=2,
            endpoint_name="digits-canary",
            deployment=Deployment.blue_green_canary(
                canary_size=CapacitySize.percent(10),
                wait_interval=cdk.Duration.minutes(15),
                # How long the old instances stay after all traffic has moved.
                termination_wait=cdk.Duration.minutes(10),
            ),
            # SageMaker refuses to change the instance type of a variant that is registered for
            # scaling.
            scaling_guard=True,
        )
        scaling = endpoint.auto_scale_instance_count(min_capacity=2, max_capacity=6)
        scaling.scale_on_gpu_utilization("Gpu")
        alarms = endpoint.add_alarms(model_latency_objective=cdk.Duration.millis(300))
        endpoint.add_rollback_alarms(*alarms.rollback_alarms)


app = cdk.App()
BlueGreenStack(app, "BlueGreenRollback")
app.synth()
