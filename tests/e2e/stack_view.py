"""Reads a deployed stack through boto3."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.stack import Stack

_NAMES = {"endpoint": "Endpoint", "config": "EndpointConfig", "model": "Model"}


Deploy = Callable[[str, str], Stack]
_NUMBERS = itertools.count()


class StackView:
    """Reads the resources of a stack."""

    def __init__(self, aws: SimulatedAccount, name: str) -> None:
        self.aws = aws
        self.name = name
        self._outputs: dict[str, str] = {}
        self._prefix = name.lower()

    @property
    def stack(self) -> Stack:
        return self.aws.stack(self.name)

    def output(self, key: str) -> str:
        """An output of the stack, as CloudFormation describes it."""
        (stack,) = self.aws.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return {each["OutputKey"]: str(each["OutputValue"]) for each in stack["Outputs"]}[key]

    def physical_ids(self) -> dict[str, str]:
        """The physical ids of the endpoints, configurations and models, by type and construct."""
        listed = self.aws.client("cloudformation").list_stack_resources(StackName=self.name)
        found = {}
        for each in listed["StackResourceSummaries"]:
            for kind, suffix in _NAMES.items():
                if each["ResourceType"] == f"AWS::SageMaker::{suffix}":
                    construct = (
                        "Single" if each["LogicalResourceId"].startswith("Single") else "Many"
                    )
                    found[f"{kind}:{construct}"] = each["PhysicalResourceId"]
        return found

    def declared(self) -> Any:
        """The template that CloudFormation reports as deployed."""
        return self.aws.client("cloudformation").get_template(StackName=self.name)["TemplateBody"]

    # SageMaker.

    def endpoint(self, output: str) -> dict[str, Any]:
        return self._sagemaker("describe_endpoint", EndpointName=self.output(output))

    def endpoint_config(self, output: str) -> dict[str, Any]:
        name = self.endpoint(output)["EndpointConfigName"]
        return self._sagemaker("describe_endpoint_config", EndpointConfigName=name)

    def variant_names(self, output: str) -> list[str]:
        """The variants that the endpoint runs."""
        return [each["VariantName"] for each in self.endpoint(output)["ProductionVariants"]]

    def model(self, output: str) -> dict[str, Any]:
        (variant,) = self.endpoint_config(output)["ProductionVariants"]
        return self._sagemaker("describe_model", ModelName=variant["ModelName"])

    def exists(self, kind: str, arn: str) -> bool:
        """Whether a model or an endpoint configuration still exists."""
        name = arn.rpartition("/")[2]
        try:
            if kind == "model":
                self._sagemaker("describe_model", ModelName=name)
            else:
                self._sagemaker("describe_endpoint_config", EndpointConfigName=name)
        except ClientError:
            return False
        return True

    def count_models(self) -> int:
        """How many models of this stack exist in SageMaker, used or not."""
        models = self._sagemaker("list_models")["Models"]
        return len([each for each in models if each["ModelName"].startswith(f"{self.name}-")])

    def set_desired_instance_count(self, output: str, count: int) -> None:
        """Set the desired instance count, as Application Auto Scaling does."""
        self._sagemaker(
            "update_endpoint_weights_and_capacities",
            EndpointName=self.output(output),
            DesiredWeightsAndCapacities=[
                {"VariantName": "AllTraffic", "DesiredInstanceCount": count}
            ],
        )

    def _sagemaker(self, operation: str, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(self.aws.client("sagemaker"), operation)(**request)
        return answer

    # Scaling.

    def scalable_targets(self, output: str) -> list[dict[str, Any]]:
        return self._scaling("describe_scalable_targets", "ScalableTargets", output)

    def scaling_policies(self, output: str) -> list[dict[str, Any]]:
        return self._scaling("describe_scaling_policies", "ScalingPolicies", output)

    def _scaling(self, operation: str, member: str, output: str) -> list[dict[str, Any]]:
        client = self.aws.client("application-autoscaling")
        found = getattr(client, operation)(ServiceNamespace="sagemaker")[member]
        resource = f"endpoint/{self.output(output)}/variant/AllTraffic"
        return [each for each in found if each["ResourceId"] == resource]

    # S3.

    def object(self, url: str) -> bytes:
        bucket, _, key = url.removeprefix("s3://").partition("/")
        body: bytes = self.aws.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    def objects(self, url: str) -> dict[str, bytes]:
        """The objects below a prefix, by their names relative to it."""
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        listed = (
            self.aws.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
        )
        keys = [each["Key"] for each in listed]
        return {key.removeprefix(prefix): self.object(f"s3://{bucket}/{key}") for key in keys}

    def archives(self) -> dict[str, bytes]:
        """The archives below the prefix of the multi-model endpoint, by target model."""
        found = self.objects(self.output("ModelsUrl"))
        return {name: body for name, body in found.items() if name.endswith(".tar.gz")}

    def bucket(self) -> dict[str, Any]:
        """The settings of the bucket that the stack created."""
        name = self.output("ModelsUrl").removeprefix("s3://").partition("/")[0]
        s3 = self.aws.client("s3")
        (rule,) = s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"][
            "Rules"
        ]
        (owner,) = s3.get_bucket_ownership_controls(Bucket=name)["OwnershipControls"]["Rules"]
        return {
            "public_access_block": s3.get_public_access_block(Bucket=name)[
                "PublicAccessBlockConfiguration"
            ],
            "encryption": rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"],
            "ownership": owner["ObjectOwnership"],
            "policy": json.loads(s3.get_bucket_policy(Bucket=name)["Policy"]),
        }

    def leftovers(self) -> set[str]:
        """The types of resources whose names contain the stack's name,
        in every service that it uses.
        """
        return {kind for kind, names in self._all_names().items() if self._mine(names)}

    def _mine(self, names: list[str]) -> list[str]:
        return [name for name in names if f"{self._prefix}-" in name.lower()]

    def _all_names(self) -> dict[str, list[str]]:
        clients = {
            name: self.aws.client(name) for name in ("s3", "sagemaker", "iam", "lambda", "logs")
        }
        cloudwatch, scaling = (
            self.aws.client("cloudwatch"),
            self.aws.client("application-autoscaling"),
        )
        targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        policies = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")[
            "ScalingPolicies"
        ]
        sagemaker = clients["sagemaker"]
        return {
            "bucket": [each["Name"] for each in clients["s3"].list_buckets()["Buckets"]],
            "model": [each["ModelName"] for each in sagemaker.list_models()["Models"]],
            "endpoint-config": [
                each["EndpointConfigName"]
                for each in sagemaker.list_endpoint_configs()["EndpointConfigs"]
            ],
            "endpoint": [each["EndpointName"] for each in sagemaker.list_endpoints()["Endpoints"]],
            "role": [each["RoleName"] for each in clients["iam"].list_roles()["Roles"]],
            "function": [
                each["FunctionName"] for each in clients["lambda"].list_functions()["Functions"]
            ],
            "log-group": [
                each["logGroupName"] for each in clients["logs"].describe_log_groups()["logGroups"]
            ],
            "alarm": [each["AlarmName"] for each in cloudwatch.describe_alarms()["MetricAlarms"]],
            "dashboard": [
                each["DashboardName"] for each in cloudwatch.list_dashboards()["DashboardEntries"]
            ],
            "scalable-target": [each["ResourceId"] for each in targets],
            "scaling-policy": [each["ResourceId"] for each in policies],
        }


# Fixtures of the tests of one stack. The module has its STACK, its FIRST state, and the
# ``assemblies``.


@pytest.fixture(scope="module")
def deploy(request: pytest.FixtureRequest, aws: SimulatedAccount, assemblies: Path) -> Deploy:
    """Deploys a state under a stack name."""
    return lambda state, name: aws.deploy(assemblies / state, request.module.STACK, stack_name=name)


@pytest.fixture
def fresh(request: pytest.FixtureRequest, aws: SimulatedAccount, deploy: Deploy) -> StackView:
    """A stack in the first state, for tests that change it."""
    name = f"Fresh{next(_NUMBERS)}"
    stack = deploy(request.module.FIRST, name)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    return StackView(aws, name)
