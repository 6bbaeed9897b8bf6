"""Endpoints of every kind that the constructs have: adopted, deleted,
and deployed by their apps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from described_endpoints import changed_paths, describe
from notebook_endpoints import BUCKET, ROLE, prepare_account, write_archive
from programs import run_command
from synthesized_adoption import ARTIFACT, synthesize

from cdk_rehearse import SimulatedAccount

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_engine")]

ACCOUNT, REGION = "123456789012", "us-east-1"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/service-role/{ROLE}"
IMAGE = f"785573368785.dkr.ecr.{REGION}.amazonaws.com/sagemaker-tritonserver:23.02-py3"
OWN_IMAGE = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/serving"
DIGEST = "sha256:" + "0123456789abcdef" * 4
ARCHIVE = f"s3://{BUCKET}/sagemaker-triton-2023-04-05-12-00-00-123/model.tar.gz"
VARIANT = {
    "VariantName": "AllTraffic",
    "ModelName": "first",
    "InstanceType": "ml.g5.xlarge",
    "InitialInstanceCount": 1,
    "InitialVariantWeight": 1,
}


class Notebook:
    """The boto3 calls of a notebook, with what they leave out."""

    def __init__(self, aws: SimulatedAccount) -> None:
        self.aws = aws
        self.sagemaker = aws.client("sagemaker")

    def model(
        self, name: str = "first", container: dict[str, Any] | None = None, **options: Any
    ) -> None:
        given = {"Image": IMAGE, "ModelDataUrl": ARCHIVE, **(container or {})}
        given = {key: value for key, value in given.items() if value is not None}
        self.sagemaker.create_model(
            ModelName=name, ExecutionRoleArn=ROLE_ARN, PrimaryContainer=given, **options
        )

    def endpoint(
        self, *variants: dict[str, Any], tags: dict[str, str] | None = None, **config: Any
    ) -> None:
        found = [{**VARIANT, **each} for each in variants or ({},)]
        found = [{key: value for key, value in each.items() if value is not None} for each in found]
        self.sagemaker.create_endpoint_config(
            EndpointConfigName="config-2023", ProductionVariants=found, **config
        )
        listed = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
        self.sagemaker.create_endpoint(
            EndpointName="notebook", EndpointConfigName="config-2023", Tags=listed
        )


def several_variants(notebook: Notebook) -> None:
    notebook.model()
    notebook.model("second", {"Environment": {"SAGEMAKER_TRITON_THREAD_COUNT": "16"}})
    notebook.endpoint(
        {"VariantName": "Blue", "InitialInstanceCount": 2, "InitialVariantWeight": 3},
        {
            "VariantName": "Green",
            "ModelName": "second",
            "InstanceType": "ml.g4dn.xlarge",
            "EnableSSMAccess": True,
        },
        tags={"team": "vision", "cost": "42"},
    )
    scaling = notebook.aws.client("application-autoscaling")
    key = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/notebook/variant/Blue",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling.register_scalable_target(**key, MinCapacity=1, MaxCapacity=4)
    for name, metric in (
        ("requests", "SageMakerVariantInvocationsPerInstance"),
        ("concurrent", "SageMakerVariantConcurrentRequestsPerModelHighResolution"),
    ):
        scaling.put_scaling_policy(
            **key,
            PolicyName=name,
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 70.0,
                "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
                "ScaleInCooldown": 300,
                "DisableScaleIn": False,
            },
        )
    scaling.put_scheduled_action(
        **key,
        ScheduledActionName="night",
        Schedule="cron(0 20 * * ? *)",
        Timezone="Europe/Berlin",
        ScalableTargetAction={"MinCapacity": 1, "MaxCapacity": 1},
    )


def shadow(notebook: Notebook) -> None:
    notebook.model()
    notebook.model("second")
    copy = {**VARIANT, "VariantName": "Shadow", "ModelName": "second", "InitialVariantWeight": 0.5}
    notebook.endpoint(
        {"RoutingConfig": {"RoutingStrategy": "RANDOM"}}, ShadowProductionVariants=[copy]
    )


def asynchronous(notebook: Notebook) -> None:
    notebook.model()
    notebook.endpoint(
        {"VolumeSizeInGB": None},
        AsyncInferenceConfig={
            "OutputConfig": {"S3OutputPath": f"s3://{BUCKET}/async/output"},
            "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 4},
        },
    )


def captured(notebook: Notebook) -> None:
    key = notebook.aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    notebook.model()
    notebook.endpoint(
        {
            "InstanceType": "ml.p3.2xlarge",
            "VolumeSizeInGB": 100,
            "ModelDataDownloadTimeoutInSeconds": 1200,
        },
        KmsKeyId=key,
        DataCaptureConfig={
            "EnableCapture": True,
            "InitialSamplingPercentage": 20,
            "DestinationS3Uri": f"s3://{BUCKET}/datacapture",
            "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
            "CaptureContentTypeHeader": {"JsonContentTypes": ["application/json"]},
        },
    )


def isolated(notebook: Notebook) -> None:
    ec2 = notebook.aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=f"{REGION}{zone}"
        )["Subnet"]
        for n, zone in enumerate("ab")
    ]
    group = ec2.create_security_group(VpcId=vpc, GroupName="serving", Description="serving")[
        "GroupId"
    ]
    network = {"Subnets": [each["SubnetId"] for each in subnets], "SecurityGroupIds": [group]}
    notebook.model(VpcConfig=network, EnableNetworkIsolation=True)
    notebook.endpoint()


def own_image(notebook: Notebook) -> None:
    notebook.model("first", {"Image": f"{OWN_IMAGE}:latest"})
    notebook.model("second", {"Image": f"{OWN_IMAGE}@{DIGEST}"})
    notebook.endpoint({"VariantName": "Tag"}, {"VariantName": "Digest", "ModelName": "second"})


def files(notebook: Notebook) -> None:
    s3 = notebook.aws.client("s3")
    s3.put_object(Bucket=BUCKET, Key="files/first/config.pbtxt", Body=b'name: "first"')
    source = {
        "S3DataSource": {
            "S3Uri": f"s3://{BUCKET}/files/",
            "S3DataType": "S3Prefix",
            "CompressionType": "None",
        }
    }
    notebook.model("first", {"ModelDataUrl": None, "ModelDataSource": source})
    notebook.endpoint()


def pools(notebook: Notebook) -> None:
    notebook.model()
    notebook.model("second")
    types = ["ml.g5.xlarge", "ml.g5.2xlarge"]
    listed: list[dict[str, Any]] = [
        {"InstanceType": each, "Priority": n} for n, each in enumerate(types, 1)
    ]
    listed[1]["ModelNameOverride"] = "second"
    notebook.endpoint({"InstanceType": None, "InstancePools": listed, "InitialInstanceCount": 2})


def components(notebook: Notebook) -> None:
    notebook.model()
    notebook.endpoint(
        {
            "ModelName": None,
            "InitialVariantWeight": None,
            "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
            "ManagedInstanceScaling": {
                "Status": "ENABLED",
                "MinInstanceCount": 1,
                "MaxInstanceCount": 3,
                "ScaleInPolicy": {
                    "Strategy": "CONSOLIDATION",
                    "CooldownInMinutes": 5,
                    "MaximumStepSize": 2,
                },
            },
        },
        ExecutionRoleArn=ROLE_ARN,
    )
    notebook.sagemaker.create_inference_component(
        InferenceComponentName="scorer",
        EndpointName="notebook",
        VariantName="AllTraffic",
        Specification={
            "ModelName": "first",
            "ComputeResourceRequirements": {
                "MinMemoryRequiredInMb": 1024,
                "NumberOfAcceleratorDevicesRequired": 1,
            },
        },
        RuntimeConfig={"CopyCount": 1},
    )


KINDS: tuple[Callable[[Notebook], None], ...] = (
    several_variants,
    shadow,
    asynchronous,
    captured,
    isolated,
    own_image,
    files,
    pools,
    components,
)


@pytest.fixture
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        prepare_account(account)
        yield account


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.__name__)
def test_kind_is_carried_over(
    aws: SimulatedAccount, kind: Callable[[Notebook], None], tmp_path: Path
) -> None:
    """The app of each kind deploys an endpoint whose description differs
    only as the report says.
    """
    archive = write_archive(tmp_path / "model.tar.gz", {"first": 1})
    aws.client("s3").upload_file(str(archive), BUCKET, ARCHIVE.removeprefix(f"s3://{BUCKET}/"))
    kind(Notebook(aws))
    before = describe(aws, "notebook")
    words = [
        "adopt",
        "notebook",
        "-o",
        str(tmp_path / "app"),
        "--switch",
        "import",
        "--no-synth",
        "--json",
    ]
    adoption = json.loads(run_command(*words, environment=aws.environment()))
    delete(aws)
    synthesize(tmp_path / "app", tmp_path / "assembly")
    stack = aws.deploy(tmp_path / "assembly", ARTIFACT)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    named = {each["path"] for each in adoption["differences"]}
    assert changed_paths(before, describe(aws, "notebook")) == named


def delete(aws: SimulatedAccount) -> None:
    """Delete the endpoint with its scaling and its components."""
    sagemaker, scaling = aws.client("sagemaker"), aws.client("application-autoscaling")
    for each in scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]:
        key = {name: each[name] for name in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
        scaling.deregister_scalable_target(**key)
    for each in sagemaker.list_inference_components()["InferenceComponents"]:
        sagemaker.delete_inference_component(InferenceComponentName=each["InferenceComponentName"])
    sagemaker.delete_endpoint(EndpointName="notebook")
