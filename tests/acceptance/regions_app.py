"""An app of two Regions whose endpoint takes its network, key and instance type from lookups.

With IS_BROKEN in the environment, the models change and a later resource cannot be created.
"""

import os

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_ssm as ssm

from constructs_triton import (
    CompressionType,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
)

ACCOUNT = "123456789012"
EUROPE = cdk.Environment(account=ACCOUNT, region="eu-west-1")
AMERICA = cdk.Environment(account=ACCOUNT, region="us-east-1")
IS_BROKEN = "IS_BROKEN" in os.environ


def add_base(app: cdk.App) -> None:
    """What another team has deployed: a network, a key and a parameter."""
    stack = cdk.Stack(app, "HarborBase", env=EUROPE)
    ec2.Vpc(stack, "Vpc", vpc_name="Harbor", max_azs=2, nat_gateways=1)
    kms.Key(stack, "Key", alias="Harbor/Models")
    ssm.StringParameter(
        stack, "Type", parameter_name="/Harbor/InstanceType", string_value="ml.c6i.2xlarge"
    )


def add_berths(app: cdk.App) -> TritonEndpoint:
    """The endpoint, of which the looked-up values are known in the second synthesis."""
    stack = cdk.Stack(app, "HarborRotterdam", env=EUROPE)
    key = kms.Key.from_lookup(stack, "Key", alias_name="alias/Harbor/Models")
    instance_type = ssm.StringParameter.value_from_lookup(stack, "/Harbor/InstanceType")
    endpoint = TritonEndpoint(
        stack,
        "Berths",
        model_repository=TritonModelRepository(
            stack,
            "Models",
            source=ModelSource.from_directory("changed" if IS_BROKEN else "models"),
            encryption_key=key,
        ),
        compression_type=CompressionType.NONE,
        instance_type=InstanceType.of(instance_type),
        endpoint_name="BerthsRotterdam",
        vpc=ec2.Vpc.from_lookup(stack, "Vpc", vpc_name="Harbor"),
    )
    if IS_BROKEN:
        broken = cloudwatch.CfnDashboard(stack, "Broken", dashboard_body="not json")
        broken.node.add_dependency(endpoint)
    return endpoint


def add_desk(app: cdk.App, endpoint: TritonEndpoint) -> None:
    """A caller in the other Region."""
    stack = cdk.Stack(app, "HarborDesk", env=AMERICA, cross_region_references=True)
    service = iam.ServicePrincipal("lambda.amazonaws.com")
    role = iam.Role(stack, "Clerk", role_name="HarborClerk", assumed_by=service)
    endpoint.grant_invoke(role)


app = cdk.App()
if "IS_BASE" in os.environ:
    add_base(app)
else:
    add_desk(app, add_berths(app))
app.synth()
