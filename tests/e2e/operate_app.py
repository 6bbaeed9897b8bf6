"""The stack of the tests of deployed endpoints, synthesized once for each of its states."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct
from deploy_app import write_models

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

STACK = "Digits"
NAME = "digits"


class DigitsStack(cdk.Stack):
    """A scaled multi-model endpoint with an alarm, and a role that operates it."""

    def __init__(self, scope: Construct, id: str, *, models: Path, instance_type: str) -> None:
        super().__init__(scope, id)
        endpoint = TritonMultiModelEndpoint(
            self,
            "Digits",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(models)
            ),
            instance_type=InstanceType.of(instance_type),
            endpoint_name=NAME,
            scaling_guard=True,
        )
        scaling = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        scaling.scale_on_invocations_per_instance("Invocations", target_invocations_per_minute=600)
        endpoint.add_alarms(alarm_name_prefix=NAME)
        role = iam.Role(self, "Operator", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        endpoint.grant_operate(role)
        cdk.CfnOutput(self, "OperatorArn", value=role.role_arn)


def synthesize(directory: Path) -> Path:
    """Write the assembly of each state to a folder of its name below the directory."""
    models = write_models(directory / "models", (("alpha", 1), ("beta", 2)))
    for state, instance_type in (("first", "ml.c6i.large"), ("second", "ml.c6i.xlarge")):
        app = cdk.App(outdir=str(directory / state), builtin_cloud_formation_validation=False)
        DigitsStack(app, STACK, models=models, instance_type=instance_type)
        app.synth()
    return directory
