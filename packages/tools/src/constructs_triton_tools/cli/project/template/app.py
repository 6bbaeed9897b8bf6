"""The CDK app: one SageMaker endpoint with the models of the folder ``models``."""

import json
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import InstanceType, ModelSource, TritonEndpoint, TritonModelRepository

PROJECT = Path(__file__).parent


class EndpointStack(cdk.Stack):
    """The model ``scorer`` on CPU instances, which scale with the requests."""

    def __init__(self, scope: Construct, id: str, *, stack_name: str) -> None:
        super().__init__(scope, id, stack_name=stack_name)
        models = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(PROJECT / "models")
        )
        self.endpoint = TritonEndpoint(
            self,
            "Endpoint",
            model_repository=models,
            model="scorer",
            instance_type=InstanceType.of("ml.c5.xlarge"),
        )
        scaling = self.endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        scaling.scale_on_invocations_per_instance("Requests", max_requests_per_second=50)
        cdk.CfnOutput(self, "EndpointName", value=self.endpoint.endpoint_name)


def build_app() -> cdk.App:
    """Return the app with the context of cdk.json, so that tests see what `cdk deploy` deploys."""
    app = cdk.App(context=json.loads((PROJECT / "cdk.json").read_text())["context"])
    EndpointStack(app, "Endpoint", stack_name="triton-project")
    return app


if __name__ == "__main__":
    build_app().synth()
