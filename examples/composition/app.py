"""An endpoint in the network of existing stacks, with callers in another stack.

``ShopStack`` is an example of any application with a function and a workflow. It is deployed once:
a grant allows a model whatever its content, and the function finds the current archive in the index
of the models.
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
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVpcEndpoints,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class NetworkStack(cdk.Stack):
    """The existing network."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=1)
        TritonVpcEndpoints(self, "Routes", vpc=self.vpc, runtime_access=True)


class CatalogStack(cdk.Stack):
    """The new stack: a multi-model endpoint in the existing network."""

    def __init__(self, scope: Construct, id: str, *, vpc: ec2.IVpc) -> None:
        super().__init__(scope, id)
        self.repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(MODELS / "catalog")
        )
        self.endpoint = TritonMultiModelEndpoint(
            self,
            "Catalog",
            model_repository=self.repository,
            instance_type=InstanceType.of("ml.c6i.xlarge"),
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
        )


class ShopStack(cdk.Stack):
    """The callers: a function that may call one model, and a workflow that may call all of them."""

    def __init__(self, scope: Construct, id: str, *, vpc: ec2.IVpc, catalog: CatalogStack) -> None:
        super().__init__(scope, id)
        reviews = lambda_.Function(
            self,
            "Reviews",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="handler.handler",
            code=lambda_.Code.from_asset(str(Path(__file__).parent / "function")),
            environment={
                "SENTIMENT_ENDPOINT": catalog.endpoint.endpoint_name,
                "MODEL_INDEX": catalog.repository.index_url,
            },
            vpc=vpc,
        )
        catalog.endpoint.grant_invoke(reviews, target_models=["sentiment"])
        catalog.repository.grant_read_index(reviews)
        self._add_workflow(catalog)

    def _add_workflow(self, catalog: CatalogStack) -> None:
        forecast = tasks.CallAwsService(
            self,
            "ForecastSales",
            service="sagemakerruntime",
            action="invokeEndpoint",
            iam_action="sagemaker:InvokeEndpoint",
            iam_resources=[catalog.endpoint.endpoint_arn],
            parameters={
                "EndpointName": catalog.endpoint.endpoint_name,
                "ContentType": "application/json",
                "TargetModel": sfn.JsonPath.string_at("$.target_model"),
                "Body": sfn.JsonPath.object_at("$.request"),
            },
        )
        definition = sfn.DefinitionBody.from_chainable(forecast)
        sfn.StateMachine(self, "NightlyForecast", definition_body=definition)


app = cdk.App()
network = NetworkStack(app, "ShopNetwork")
models = CatalogStack(app, "Catalog", vpc=network.vpc)
ShopStack(app, "Shop", vpc=network.vpc, catalog=models)
app.synth()
