"""An endpoint in an existing stack.

``ShopStack`` is an example of any application with a function, a workflow and a network. The endpoint joins
its VPC, and a few lines let the function and the workflow call it.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonVpcEndpoints,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"
HANDLER = """
import os
import boto3

def handler(event, context):
    answer = boto3.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=os.environ["SENTIMENT_ENDPOINT"], ContentType="application/json", Body=event["body"]
    )
    return {"statusCode": 200, "body": answer["Body"].read().decode()}
"""


class ShopStack(cdk.Stack):
    """The existing resources: a network and a function in it."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=1)
        self.reviews = lambda_.Function(
            self,
            "Reviews",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="index.handler",
            code=lambda_.Code.from_inline(HANDLER),
            vpc=self.vpc,
        )


def add_sentiment(stack: ShopStack) -> TritonEndpoint:
    """The new resources: an endpoint in the network that the function may call, and a workflow."""
    TritonVpcEndpoints(stack, "Routes", vpc=stack.vpc, runtime_access=True)
    repository = TritonModelRepository(stack, "Models", source=ModelSource.from_directory(MODELS / "catalog"))
    endpoint = TritonEndpoint(
        stack,
        "Sentiment",
        model_repository=repository,
        model="sentiment",
        instance_type=InstanceType.of("ml.c6i.xlarge"),
        vpc=stack.vpc,
        vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
    )
    endpoint.grant_invoke(stack.reviews)
    stack.reviews.add_environment("SENTIMENT_ENDPOINT", endpoint.endpoint_name)
    score = tasks.CallAwsService(
        stack,
        "ScoreReview",
        service="sagemakerruntime",
        action="invokeEndpoint",
        iam_action="sagemaker:InvokeEndpoint",
        iam_resources=[endpoint.endpoint_arn],
        parameters={
            "EndpointName": endpoint.endpoint_name,
            "ContentType": "application/json",
            "Body": sfn.JsonPath.object_at("$.request"),
        },
    )
    sfn.StateMachine(stack, "NightlyReview", definition_body=sfn.DefinitionBody.from_chainable(score))
    return endpoint


app = cdk.App()
add_sentiment(ShopStack(app, "Composition"))
app.synth()
