"""The CDK app: one SageMaker endpoint for all models of the folder ``models``."""

import json
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

PROJECT = Path(__file__).parent


class EndpointStack(cdk.Stack):
    """Models that share GPU instances, which scale with the utilization of their GPUs."""

    def __init__(self, scope: Construct, id: str, *, stack_name: str) -> None:
        super().__init__(scope, id, stack_name=stack_name)
        source = ModelSource.from_directory(PROJECT / "models")
        self.endpoint = TritonMultiModelEndpoint(
            self,
            "Reviews",
            model_repository=TritonModelRepository(self, "Models", source=source),
            instance_type=InstanceType.of("ml.g5.xlarge"),
        )
        scaling = self.endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
        scaling.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
        # The default policy of the topic lets alarms of this account send messages.
        on_call = sns.Topic(self, "OnCall")
        self.endpoint.add_alarms(actions=[actions.SnsAction(on_call)])
        cdk.CfnOutput(self, "EndpointName", value=self.endpoint.endpoint_name)
        cdk.CfnOutput(self, "OnCallTopic", value=on_call.topic_arn)


def build_app() -> cdk.App:
    """Return the app with the context of cdk.json, so that tests see what `cdk deploy` deploys."""
    app = cdk.App(context=json.loads((PROJECT / "cdk.json").read_text())["context"])
    EndpointStack(app, "Endpoint", stack_name="triton-project")
    return app


if __name__ == "__main__":
    build_app().synth()
