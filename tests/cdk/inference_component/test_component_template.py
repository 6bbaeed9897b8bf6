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

CONFIG, COMPONENT = "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::InferenceComponent"


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
    config, model = only(template, CONFIG), only(template, "AWS::SageMaker::Model")
    assert config["VpcConfig"] == model["VpcConfig"]
    assert len(config["VpcConfig"]["Subnets"]) == 2
    assert config["EnableNetworkIsolation"] is model["EnableNetworkIsolation"] is True
    assert config["ExecutionRoleArn"] == model["ExecutionRoleArn"]
    assert flat(config["KmsKeyId"]).startswith("<Key")
    assert config["MetricsConfig"] == {"EnableEnhancedMetrics": True}
    assert config["ProductionVariants"][0]["VolumeSizeInGB"] == 100
    assert {"AttachToVpc", "EncryptVolume"} <= statements(template).keys()
    (kept,) = resources(template, "AWS::SageMaker::Endpoint").values()
    assert kept["DeletionPolicy"] == "Retain"


def test_component_has_all_that_was_set(stack: cdk.Stack, tmp_path: Path) -> None:
    """Each property reaches CloudFormation's property."""
    add_component(
        add_endpoint(stack, removal_policy=cdk.RemovalPolicy.RETAIN),
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
        log_retention=logs.RetentionDays.ONE_WEEK,
        removal_policy=cdk.RemovalPolicy.RETAIN,
        deployment=ComponentDeployment.rolling(
            maximum_batch_size=CopySize.copies(1),
            wait_interval=Duration.minutes(2),
            rollback_maximum_batch_size=CopySize.percent(100),
            maximum_execution_timeout=Duration.hours(1),
            alarms=[
                cloudwatch.Alarm.from_alarm_arn(
                    stack, "A", "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:a"
                )
            ],
        ),
    )
    template = synthesize(stack)
    found = only(template, COMPONENT)
    assert found["InferenceComponentName"] == "pipeline"
    assert found["VariantName"] == "AllTraffic"
    assert found["RuntimeConfig"] == {"CopyCount": 2}
    specification = found["Specification"]
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
    assert found["DeploymentConfig"] == {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
            "WaitIntervalInSeconds": 120,
            "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 100},
            "MaximumExecutionTimeoutInSeconds": 3600,
        },
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "a"}]},
    }
    assert flat(statements(template)["ReadAlarms"]["Resource"]).endswith(":alarm:a")
    (component,) = resources(template, COMPONENT).values()
    assert component["DeletionPolicy"] == "Retain"
    (group,) = resources(template, "AWS::Logs::LogGroup")
    assert group in component["DependsOn"]
    name = only(template, "AWS::Logs::LogGroup")["LogGroupName"]
    assert name == "/aws/sagemaker/InferenceComponents/pipeline"


def test_all_at_once_has_no_deployment_config(stack: cdk.Stack, tmp_path: Path) -> None:
    """Without a rolling policy SageMaker updates blue/green;
    the default is half of the copies at a time.
    """
    endpoint = add_endpoint(stack)
    add_component(endpoint, tmp_path, "Half")
    add_component(endpoint, tmp_path, "All", deployment=ComponentDeployment.all_at_once())
    found = resources(synthesize(stack), COMPONENT)
    configs = {name[:3]: each["Properties"].get("DeploymentConfig") for name, each in found.items()}
    assert configs["All"] is None
    half = {"Type": "CAPACITY_PERCENT", "Value": 50}
    assert configs["Hal"]["RollingUpdatePolicy"]["MaximumBatchSize"] == half


def logical_id(tmp_path: Path, endpoint: dict[str, Any], component: dict[str, Any]) -> str:
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
    first, _ = (add_component(endpoint, tmp_path, name) for name in ("First", "Second"))
    role = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    first.grant_invoke(role)
    first.grant_invoke_with_response_stream(role)
    first.grant_operate(role)
    endpoint.grant_operate(role)
    template = synthesize(stack)
    (policy,) = resources(template, "AWS::IAM::Policy").values()
    found = policy["Properties"]["PolicyDocument"]["Statement"]
    calls = next(each for each in found if "InvokeEndpoint" in str(each["Action"]))
    assert {flat(each)[1:7] for each in calls["Resource"]} == {"FirstC", "Shared"}
    assert "Second" not in json.dumps(policy)
    assert "/aws/sagemaker/InferenceComponents/*:*" in json.dumps(policy)


def test_components_of_other_stacks_have_their_own_permissions(tmp_path: Path) -> None:
    """The role is that of the endpoint, and the stacks do not depend on each other in a circle."""
    app = make_app()
    shared, team = (cdk.Stack(app, name, env=ENVIRONMENT) for name in ("SharedStack", "Team"))
    endpoint = add_endpoint(shared)
    bucket = cdk.aws_s3.Bucket(team, "Bucket")
    component = add_component(endpoint, tmp_path, scope=team)
    endpoint.grant(iam.User(team, "User"), "sagemaker:DescribeEndpoint")
    assert endpoint.role.node.path.startswith("SharedStack/")
    alarms = component.add_alarms(alarm_name_prefix="team")
    component.add_rollback_alarms(*alarms.rollback_alarms)
    assert bucket.node.path == "Team/Bucket"
    templates = {each.stack_name: each.template for each in app.synth().stacks}
    granted = statements(templates["Team"])
    assert {"LoadModel", "PullImage", "ReadAlarms"} <= granted.keys()
    assert "LoadModel" not in statements(templates["SharedStack"])


def test_role_of_too_many_policies_leaves_no_component(tmp_path: Path) -> None:
    """Each component of another stack has its own policy, and an update may double five of them."""
    app = make_app()
    shared, team = (cdk.Stack(app, name, env=ENVIRONMENT) for name in ("SharedStack", "Team"))
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
    ec2.SecurityGroup(stack, "Db", vpc=ec2.Vpc(stack, "Other", max_azs=2)).connections.allow_from(
        endpoint, ec2.Port.tcp(5432)
    )
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

    images: tuple[TritonImage, ...]
    found, warned = [], []
    for images in (
        (TritonImage.dlc("24.09"),),
        (TritonImage.dlc("24.09"), TritonImage.dlc("26.05")),
    ):
        other = make_stack()
        endpoint = add_endpoint(other)
        for position, image in enumerate(images):
            add_component(endpoint, tmp_path, f"C{position}", image=image)
        found.append(ami(synthesize(other)))
        warned.append([each.removeprefix("constructs-triton:") for each in warnings_of(other)])
    assert found[0] != found[1] == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert warned == [[], ["component-images-need-different-amis"]]
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
    assert set(map(str, needs.values())) == {"{'Ref': 'Number'}"}


def test_models_may_be_files(stack: cdk.Stack, tmp_path: Path) -> None:
    """Without an archive, the model reads a prefix."""
    add_component(add_endpoint(stack), tmp_path, compression_type=CompressionType.NONE)
    container = only(synthesize(stack), "AWS::SageMaker::Model")["PrimaryContainer"]
    assert container["ModelDataSource"]["S3DataSource"]["CompressionType"] == "None"
