"""Deploys what users have beside an endpoint: resources, functions and stacks of other kinds."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from aws_cdk import aws_s3_notifications as s3_notifications
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as sns_subscriptions
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_ssm as ssm
from aws_cdk import custom_resources
from constructs import Construct

from cdk_rehearse import SimulatedAccount
from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

pytestmark = pytest.mark.e2e
MODELS = Path(__file__).resolve().parents[2] / "assets" / "model_repositories" / "digits"


#: What the apps use of each way in which something is not simulated.
_NOT_SIMULATED = {
    "AWS::ApiGateway::RestApi",
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::CloudFormation::CustomResource",
    "AWS::DynamoDB::Table",
    "AWS::ECS::Service",
    "AWS::Lambda::Function",
    "AWS::Lambda::Permission",
    "AWS::S3::Bucket.CorsConfiguration",
    "AWS::SQS::Queue",
    "Custom::AWS",
    "Custom::CDKBucketDeployment",
    "value of AWS::SecretsManager::Secret",
}


class Network(cdk.Stack):
    """A stack of another team: a network that others import."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=1)


class Jobs(cdk.NestedStack):
    """A nested stack with a queue, a table and a parameter."""

    def __init__(self, scope: Construct, id: str, *, fifo: bool) -> None:
        super().__init__(scope, id)
        self.queue = sqs.Queue(self, "Jobs", fifo=fifo or None)
        self.table = dynamodb.Table(
            self,
            "Results",
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
        )
        ssm.StringParameter(self, "Address", string_value=self.queue.queue_url)


class Shop(cdk.Stack):
    """An endpoint among the resources of an application."""

    def __init__(
        self, scope: Construct, id: str, *, vpc: ec2.IVpc, site: Path, fifo: bool = False
    ) -> None:
        super().__init__(scope, id)
        models = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(str(MODELS))
        )
        endpoint = TritonEnsembleEndpoint(
            self,
            "Endpoint",
            model_repository=models,
            ensemble="digits",
            instance_type=InstanceType.of("ml.g5.xlarge"),
        )
        jobs = Jobs(self, "Nested", fifo=fifo)
        self._callers(endpoint, jobs, vpc)
        self._site(site)
        self._custom_resources()
        cdk.CfnOutput(self, "Queue", value=jobs.queue.queue_arn)

    def _callers(self, endpoint: TritonEnsembleEndpoint, jobs: Jobs, vpc: ec2.IVpc) -> None:
        code = lambda_.Code.from_inline("exports.handler = async () => 1")
        function = lambda_.Function(
            self,
            "Caller",
            runtime=lambda_.Runtime.NODEJS_22_X,
            handler="index.handler",
            code=code,
            environment={
                "QUEUE": jobs.queue.queue_url,
                "TOKEN": "{{resolve:secretsmanager:token}}",
            },
        )
        endpoint.grant_invoke(function)
        jobs.queue.grant_consume_messages(function)
        jobs.table.grant_read_write_data(function)
        apigateway.LambdaRestApi(self, "Api", handler=function)
        cluster = ecs.Cluster(self, "Cluster", vpc=vpc)
        task = ecs.FargateTaskDefinition(self, "Task")
        task.add_container("Web", image=ecs.ContainerImage.from_registry("nginx"))
        service = ecs.FargateService(self, "Service", cluster=cluster, task_definition=task)
        service.auto_scale_task_count(max_capacity=4).scale_on_cpu_utilization(
            "Cpu", target_utilization_percent=60
        )
        topic = sns.Topic(self, "Topic")
        topic.add_subscription(sns_subscriptions.SqsSubscription(sqs.Queue(self, "Events")))

    def _site(self, site: Path) -> None:
        bucket = s3.Bucket(
            self,
            "Site",
            auto_delete_objects=True,
            removal_policy=cdk.RemovalPolicy.DESTROY,
            cors=[s3.CorsRule(allowed_methods=[s3.HttpMethods.GET], allowed_origins=["*"])],
        )
        s3_deployment.BucketDeployment(
            self,
            "Deployment",
            sources=[s3_deployment.Source.asset(str(site))],
            destination_bucket=bucket,
        )
        queue = sqs.Queue(self, "Uploads")
        bucket.add_event_notification(
            s3.EventType.OBJECT_CREATED, s3_notifications.SqsDestination(queue)
        )

    def _custom_resources(self) -> None:
        call = custom_resources.AwsSdkCall(
            service="SSM",
            action="getParameter",
            parameters={"Name": "x"},
            physical_resource_id=custom_resources.PhysicalResourceId.of("x"),
        )
        read = custom_resources.AwsCustomResource(
            self,
            "Read",
            on_update=call,
            policy=custom_resources.AwsCustomResourcePolicy.from_sdk_calls(resources=["*"]),
        )
        handler = lambda_.Function(
            self,
            "Handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="index.handler",
            code=lambda_.Code.from_inline("raise SystemExit('ran')"),
        )
        provider = custom_resources.Provider(self, "Provider", on_event_handler=handler)
        own = cdk.CustomResource(self, "Own", service_token=provider.service_token)
        iam.ManagedPolicy(
            self,
            "Uses",
            statements=[
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"],
                    resources=[
                        own.get_att_string("QueueArn"),
                        read.get_response_field("Parameter.ARN"),
                    ],
                )
            ],
        )


def _synthesized(folder: Path, site: Path, *, fifo: bool) -> Path:
    app = cdk.App(outdir=str(folder))
    network = Network(app, "Network")
    Shop(app, "Shop", vpc=network.vpc, site=site, fifo=fifo)
    return Path(app.synth().directory)


def test_endpoint_among_other_resources_is_deployed(tmp_path: Path) -> None:
    """Types and functions that are not simulated are named, and everything around them works."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("hello")
    old, new = (_synthesized(tmp_path / name, site, fifo=name == "new") for name in ("old", "new"))
    with SimulatedAccount() as aws:
        aws.bootstrap()
        for name in ("Network", "Shop"):
            stack = aws.deploy(old, name)
            assert stack.status == "CREATE_COMPLETE", stack.reason
        assert aws.not_simulated.keys() >= _NOT_SIMULATED
        assert aws.functions.invocations == []
        (nested,) = [each for each in aws.stacks.all if each.name.startswith("Shop-Nested")]
        queue = next(each for each in nested.resources if each.startswith("Jobs"))
        before = nested.resources[queue].physical.id
        stack = aws.deploy(new, "Shop")
        assert stack.status == "UPDATE_COMPLETE", stack.reason
        assert nested.resources[queue].physical.id != before
        for name in ("Shop", "Network"):
            stack = aws.destroy(name)
            assert stack.status == "DELETE_COMPLETE", stack.reason
        assert nested.status == "DELETE_COMPLETE"
