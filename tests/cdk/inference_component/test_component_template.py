"""The resources of component endpoints and of their components."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Duration, Size
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from cdk_apps import (
    ENVIRONMENT,
    flat,
    make_app,
    make_stack,
    only,
    resources,
    statements,
    synthesize,
)
from component_apps import CPU, add_component, add_endpoint, warnings_of

from constructs_triton import (
    ComponentDeployment,
    CompressionType,
    CopySize,
    MetricsConfig,
    TritonComponentEndpoint,
    TritonImage,
)
from constructs_triton_core.errors import InvalidValueError

CONFIG = "AWS::SageMaker::EndpointConfig"
MODEL = "AWS::SageMaker::Model"
COMPONENT = "AWS::SageMaker::InferenceComponent"


def test_network_and_key_are_those_of_endpoint_and_models(stack: cdk.Stack, tmp_path: Path) -> None:
    """VPC, isolation and role are on the configuration, and the models have the same."""
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
    key = kms.Key(stack, "Key")
    endpoint = add_endpoint(
        stack,
        instance_type=CPU,
        vpc=vpc,
        enable_network_isolation=True,
        encryption_key=key,
        volume_size=Size.gibibytes(100),
        metrics_config=MetricsConfig(enable_enhanced_metrics=True),
        removal_policy=cdk.RemovalPolicy.RETAIN,
    )
    add_component(endpoint, tmp_path)
    endpoint.connections.allow_from_any_ipv4(ec2.Port.tcp(443))

    template = synthesize(stack)

    config = only(template, CONFIG)
    model = only(template, MODEL)
    assert config["VpcConfig"] == model["VpcConfig"]
    assert len(config["VpcConfig"]["Subnets"]) == 2
    assert config["EnableNetworkIsolation"] is True
    assert model["EnableNetworkIsolation"] is True
    assert config["ExecutionRoleArn"] == model["ExecutionRoleArn"]
    assert flat(config["KmsKeyId"]).startswith("<Key")
    assert config["MetricsConfig"] == {"EnableEnhancedMetrics": True}
    assert config["ProductionVariants"][0]["VolumeSizeInGB"] == 100
    assert {"AttachToVpc", "EncryptVolume"} <= statements(template).keys()
    (kept,) = resources(template, "AWS::SageMaker::Endpoint").values()
    assert kept["DeletionPolicy"] == "Retain"


def test_specification_has_all_that_was_set(stack: cdk.Stack, tmp_path: Path) -> None:
    """Each property of a copy reaches CloudFormation's property."""
    add_component(
        add_endpoint(stack),
        tmp_path,
        min_memory=Size.mebibytes(1500),
        max_memory=Size.gibibytes(4),
        number_of_accelerator_devices=2,
        number_of_cpu_cores=0.5,
        copy_count=2,
        inference_component_name="pipeline",
        container_startup_health_check_timeout=Duration.minutes(20),
        enable_caching=True,
        placement_strategy="SPREAD",
        max_zone_imbalance=1,
    )

    component = only(synthesize(stack), COMPONENT)

    assert component["InferenceComponentName"] == "pipeline"
    assert component["VariantName"] == "AllTraffic"
    assert component["RuntimeConfig"] == {"CopyCount": 2}
    specification = component["Specification"]
    assert flat(specification.pop("ModelName")).startswith("<PipelineModel")
    assert specification == {
        "ComputeResourceRequirements": {
            "MinMemoryRequiredInMb": 1500,
            "MaxMemoryRequiredInMb": 4096,
            "NumberOfCpuCoresRequired": 0.5,
            "NumberOfAcceleratorDevicesRequired": 2,
        },
        "StartupParameters": {
            "ContainerStartupHealthCheckTimeoutInSeconds": 1200,
            "ModelDataDownloadTimeoutInSeconds": 600,
        },
        "DataCacheConfig": {"EnableCaching": True},
        "SchedulingConfig": {
            "PlacementStrategy": "SPREAD",
            "AvailabilityZoneBalance": {"EnforcementMode": "PERMISSIVE", "MaxImbalance": 1},
        },
    }


def test_deployment_has_all_that_was_set(stack: cdk.Stack, tmp_path: Path) -> None:
    """Each property of a deployment reaches CloudFormation's property."""
    alarm = cloudwatch.Alarm.from_alarm_arn(
        stack, "A", "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:a"
    )
    deployment = ComponentDeployment.rolling(
        maximum_batch_size=CopySize.copies(1),
        wait_interval=Duration.minutes(2),
        rollback_maximum_batch_size=CopySize.percent(100),
        maximum_execution_timeout=Duration.hours(1),
        alarms=[alarm],
    )
    add_component(add_endpoint(stack), tmp_path, copy_count=2, deployment=deployment)

    template = synthesize(stack)

    assert only(template, COMPONENT)["DeploymentConfig"] == {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
            "WaitIntervalInSeconds": 120,
            "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 100},
            "MaximumExecutionTimeoutInSeconds": 3600,
        },
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "a"}]},
    }
    assert flat(statements(template)["ReadAlarms"]["Resource"]).endswith(":alarm:a")


def test_retained_component_has_its_log_group_first(stack: cdk.Stack, tmp_path: Path) -> None:
    """The component is kept, and SageMaker finds a log group with the retention."""
    add_component(
        add_endpoint(stack, removal_policy=cdk.RemovalPolicy.RETAIN),
        tmp_path,
        inference_component_name="pipeline",
        log_retention=logs.RetentionDays.ONE_WEEK,
        removal_policy=cdk.RemovalPolicy.RETAIN,
    )

    template = synthesize(stack)

    (component,) = resources(template, COMPONENT).values()
    assert component["DeletionPolicy"] == "Retain"
    ((logical_id, group),) = resources(template, "AWS::Logs::LogGroup").items()
    assert logical_id in component["DependsOn"]
    name = group["Properties"]["LogGroupName"]
    assert name == "/aws/sagemaker/InferenceComponents/pipeline"


def test_all_at_once_has_no_deployment_config(stack: cdk.Stack, tmp_path: Path) -> None:
    """Without a rolling policy SageMaker updates blue/green;
    the default is half of the copies at a time.
    """
    endpoint = add_endpoint(stack)
    add_component(endpoint, tmp_path, "Half")
    add_component(endpoint, tmp_path, "All", deployment=ComponentDeployment.all_at_once())

    configs = {}
    for name, component in resources(synthesize(stack), COMPONENT).items():
        configs[name[:3]] = component["Properties"].get("DeploymentConfig")

    assert configs["All"] is None
    half = {"Type": "CAPACITY_PERCENT", "Value": 50}
    assert configs["Hal"]["RollingUpdatePolicy"]["MaximumBatchSize"] == half


def logical_id(tmp_path: Path, endpoint: dict[str, Any], component: dict[str, Any]) -> str:
    """The logical ID of a component with these properties, on an endpoint with these."""
    stack = make_stack()
    add_component(add_endpoint(stack, **endpoint), tmp_path, **component)
    (name,) = resources(synthesize(stack), COMPONENT)
    return name


def test_identity_is_part_of_the_logical_id(tmp_path: Path) -> None:
    """What the API cannot change in place makes another resource, and everything else does not."""
    plain = logical_id(tmp_path, {}, {})
    for changed in ({"variant_name": "Other"}, {"endpoint_name": "shared"}, {"id": "Elsewhere"}):
        assert logical_id(tmp_path, changed, {}) != plain
    assert logical_id(tmp_path, {}, {"inference_component_name": "fixed"}) != plain
    for same in (
        {"copy_count": 2},
        {"min_memory": Size.gibibytes(3)},
        {"image": TritonImage.dlc("24.09")},
    ):
        assert logical_id(tmp_path, {}, same) == plain
    assert logical_id(tmp_path, {"max_instance_count": 3}, {}) == plain


def test_grant_to_invoke_names_endpoint_and_component(stack: cdk.Stack, tmp_path: Path) -> None:
    """A caller may call one component and no other of the endpoint."""
    endpoint = add_endpoint(stack)
    first = add_component(endpoint, tmp_path, "First")
    add_component(endpoint, tmp_path, "Second")
    role = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    first.grant_invoke(role)
    first.grant_invoke_with_response_stream(role)
    first.grant_operate(role)
    endpoint.grant_operate(role)

    policy = only(synthesize(stack), "AWS::IAM::Policy")

    granted = policy["PolicyDocument"]["Statement"]
    calls = [statement for statement in granted if "InvokeEndpoint" in str(statement["Action"])]
    assert {flat(arn)[1:7] for arn in calls[0]["Resource"]} == {"FirstC", "Shared"}
    assert "Second" not in json.dumps(policy)
    assert "/aws/sagemaker/InferenceComponents/*:*" in json.dumps(policy)


def test_components_of_other_stacks_have_their_own_permissions(tmp_path: Path) -> None:
    """The role is that of the endpoint, and the stacks do not depend on each other in a circle."""
    app = make_app()
    shared = cdk.Stack(app, "SharedStack", env=ENVIRONMENT)
    team = cdk.Stack(app, "Team", env=ENVIRONMENT)
    endpoint = add_endpoint(shared)
    component = add_component(endpoint, tmp_path, scope=team)
    endpoint.grant(iam.User(team, "User"), "sagemaker:DescribeEndpoint")
    alarms = component.add_alarms(alarm_name_prefix="team")
    component.add_rollback_alarms(*alarms.rollback_alarms)

    templates = {artifact.stack_name: artifact.template for artifact in app.synth().stacks}

    assert endpoint.role.node.path.startswith("SharedStack/")
    granted = statements(templates["Team"])
    assert {"LoadModel", "PullImage", "ReadAlarms"} <= granted.keys()
    assert "LoadModel" not in statements(templates["SharedStack"])


def test_role_of_too_many_policies_leaves_no_component(tmp_path: Path) -> None:
    """Each component of another stack has its own policy, and an update may double five of them."""
    app = make_app()
    shared = cdk.Stack(app, "SharedStack", env=ENVIRONMENT)
    team = cdk.Stack(app, "Team", env=ENVIRONMENT)
    endpoint = add_endpoint(shared, max_instance_count=9)
    for number in range(4):
        add_component(endpoint, tmp_path, f"C{number}", scope=team)
    with pytest.raises(InvalidValueError, match="a role can have 10 managed policies"):
        add_component(endpoint, tmp_path, "C4", scope=team)
    assert team.node.try_find_child("C4") is None


def test_component_endpoint_implements_the_interfaces_of_the_cdk(stack: cdk.Stack) -> None:
    """JavaScript code that expects IGrantable or IConnectable finds every member it calls."""
    endpoint = add_endpoint(stack, vpc=ec2.Vpc(stack, "Vpc", max_azs=2))
    kms.Key(stack, "Key").grant_decrypt(endpoint)
    database = ec2.SecurityGroup(stack, "Db", vpc=ec2.Vpc(stack, "Other", max_azs=2))
    database.connections.allow_from(endpoint, ec2.Port.tcp(5432))

    template = synthesize(stack)
    assert "kms:Decrypt" in str(resources(template, "AWS::IAM::Policy"))
    assert only(template, "AWS::EC2::SecurityGroupIngress")["FromPort"] == 5432
    assert endpoint.endpoint_ref.endpoint_arn == endpoint.cfn_endpoint.ref


def test_newest_image_of_the_components_decides_the_ami(stack: cdk.Stack, tmp_path: Path) -> None:
    """All components of an instance share its driver,
    so the newest CUDA among the images counts.
    """

    def ami(template: dict[str, Any]) -> str | None:
        (variant,) = only(template, CONFIG)["ProductionVariants"]
        version: str | None = variant.get("InferenceAmiVersion")
        return version

    old = make_stack()
    endpoint = add_endpoint(old)
    add_component(endpoint, tmp_path, "Old", image=TritonImage.dlc("24.09"))

    both = make_stack()
    endpoint = add_endpoint(both)
    add_component(endpoint, tmp_path, "Old", image=TritonImage.dlc("24.09"))
    add_component(endpoint, tmp_path, "New", image=TritonImage.dlc("26.05"))

    newest = "al2023-ami-sagemaker-inference-gpu-4-1"
    assert ami(synthesize(old)) != newest
    assert list(warnings_of(old)) == []
    assert ami(synthesize(both)) == newest
    assert list(warnings_of(both)) == ["constructs-triton:component-images-need-different-amis"]

    TritonComponentEndpoint(
        stack,
        "Explicit",
        instance_type=CPU,
        min_instance_count=1,
        max_instance_count=1,
        inference_ami_version=None,
    )
    assert ami(synthesize(stack)) is None


def test_tokens_pass_every_check(stack: cdk.Stack, tmp_path: Path) -> None:
    """Values that are known only at deployment are not compared with anything."""
    number = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
    endpoint = add_endpoint(stack, min_instance_count=number, max_instance_count=number)
    component = add_component(
        endpoint,
        tmp_path,
        min_memory=Size.mebibytes(number),
        number_of_accelerator_devices=number,
        number_of_cpu_cores=number,
        copy_count=number,
    )
    component.auto_scale_copy_count(min_capacity=number, max_capacity=number)
    needs = only(synthesize(stack), COMPONENT)["Specification"]["ComputeResourceRequirements"]
    assert all(value == {"Ref": "Number"} for value in needs.values())


def test_models_may_be_files(stack: cdk.Stack, tmp_path: Path) -> None:
    """Without an archive, the model reads a prefix."""
    add_component(add_endpoint(stack), tmp_path, compression_type=CompressionType.NONE)
    container = only(synthesize(stack), MODEL)["PrimaryContainer"]
    assert container["ModelDataSource"]["S3DataSource"]["CompressionType"] == "None"
