"""An account of moto with an endpoint that has all that a night could lose, and calls that fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.applicationautoscaling.models import applicationautoscaling_backends
from moto.sagemaker.models import sagemaker_backends

from constructs_triton.cli import main
from constructs_triton_tools.cli import options

REGION, ACCOUNT_ID, NAME = "eu-west-1", "123456789012", "digits"
FILE = Path("digits.stopped.json")
ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/endpoint"
RESOURCE = f"endpoint/{NAME}/variant/main"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
KEY = {"ServiceNamespace": "sagemaker", "ResourceId": RESOURCE, "ScalableDimension": DIMENSION}
#: SageMaker's answer has it, moto's has not.
DEPLOYMENT = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]}}
TRACKING = {
    "TargetValue": 70.0,
    "PredefinedMetricSpecification": {
        "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
    },
}


class NightAccount(boto3.Session):
    """A session with moto's account; ``deployment`` is the deployment
    configuration of the endpoint.
    """

    def __init__(self) -> None:
        super().__init__("testing", "testing", region_name=REGION)
        self.failing: dict[str, str] = {}
        self.components: list[dict[str, str]] = []
        self.described: dict[str, Any] = {}
        self.described_config: dict[str, Any] = {}
        self.alarms: list[dict[str, str]] = []
        self.status_of_new = "InService"
        self.while_waiting: Callable[[], object] = lambda: None
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.sagemaker = self.client("sagemaker")
        self.scaling = self.client("application-autoscaling")
        self.events.register("provide-client-params", self._record)
        self.events.register("before-call", self._answer)
        self.events.register("after-call.sagemaker.DescribeEndpoint", self._describe)
        self.events.register("after-call.sagemaker.DescribeEndpointConfig", self._describe_config)
        self.events.register("after-call.sagemaker.CreateEndpoint", self._create)
        scaling = "after-call.application-auto-scaling"
        self.events.register(f"{scaling}.DescribeScalingPolicies", self._describe_policies)
        self.events.register(f"{scaling}.DeregisterScalableTarget", self._delete_policies)

    def _record(self, params: Mapping[str, Any], model: Any, **_context: object) -> None:
        self.calls.append((model.name, params))

    def _answer(self, model: Any, **_context: object) -> Any:
        code = self.failing.pop(model.name, None)
        if code:
            raise ClientError({"Error": {"Code": code, "Message": "said the test"}}, model.name)
        if model.name == "ListInferenceComponents":  # moto lacks it
            return SimpleNamespace(status_code=200, headers={}), {
                "InferenceComponents": self.components
            }
        return None

    def _describe(self, parsed: dict[str, Any], **_context: object) -> None:
        if "EndpointArn" in parsed:
            parsed |= self.described

    def _describe_config(self, parsed: dict[str, Any], **_context: object) -> None:
        parsed |= self.described_config

    def _describe_policies(self, parsed: dict[str, Any], **_context: object) -> None:
        """Add the alarms of step scaling policies, which moto does not have for SageMaker."""
        for each in parsed.get("ScalingPolicies", []):
            if each["PolicyType"] == "StepScaling":
                each["Alarms"] = self.alarms

    def _create(self, **_context: object) -> None:
        self.set_status(self.status_of_new)

    def _delete_policies(self, **_context: object) -> None:
        """AWS deletes policies and scheduled actions with their target, moto keeps them."""
        backend = applicationautoscaling_backends[ACCOUNT_ID][REGION]
        backend.policies.clear()
        backend.scheduled_actions.clear()

    def names_of_calls(self) -> list[str]:
        return [name for name, _params in self.calls]

    def params_of(self, operation: str) -> list[Mapping[str, Any]]:
        return [params for name, params in self.calls if name == operation]

    def add_endpoint(self, tags: Mapping[str, str] = {"team": "search"}, **config: Any) -> None:
        """Create an endpoint with two variants, changed counts and weights,
        and scaling of one variant.
        """
        image = f"{ACCOUNT_ID}.dkr.ecr.eu-west-1.amazonaws.com/triton:1"
        self.sagemaker.create_model(
            ModelName="model", PrimaryContainer={"Image": image}, ExecutionRoleArn=ROLE
        )
        declared = {
            "ModelName": "model",
            "InstanceType": "ml.g4dn.xlarge",
            "InitialVariantWeight": 1.0,
        }
        variants = [
            {"VariantName": "main", "InitialInstanceCount": 1, **declared},
            {"VariantName": "canary", "InitialInstanceCount": 1, **declared},
        ]
        self.sagemaker.create_endpoint_config(
            EndpointConfigName="config-1", **{"ProductionVariants": variants, **config}
        )
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        self.sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName="config-1", Tags=pairs)

    def add_operation(self) -> None:
        """Change counts and weights as an operator does, and scale one variant."""
        self.described = {"LastDeploymentConfig": DEPLOYMENT}
        changed = [
            {"VariantName": "main", "DesiredWeight": 0.9, "DesiredInstanceCount": 3},
            {"VariantName": "canary", "DesiredWeight": 0.1, "DesiredInstanceCount": 1},
        ]
        self.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=NAME, DesiredWeightsAndCapacities=changed
        )
        suspended = {"DynamicScalingInSuspended": True}
        self.scaling.register_scalable_target(
            **KEY, MinCapacity=2, MaxCapacity=6, SuspendedState=suspended
        )
        self.scaling.put_scaling_policy(
            **KEY,
            PolicyName="load",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=TRACKING,
        )
        self.scaling.put_scheduled_action(
            **KEY,
            ScheduledActionName="morning",
            Schedule="cron(0 8 * * ? *)",
            Timezone="Europe/Berlin",
            ScalableTargetAction={"MinCapacity": 4},
        )

    def state(self) -> dict[str, Any]:
        """Everything that a night must bring back."""
        found = self.sagemaker.describe_endpoint(EndpointName=NAME)
        tags = self.sagemaker.list_tags(ResourceArn=found["EndpointArn"])["Tags"]
        ours = {"ServiceNamespace": "sagemaker"}
        targets = self.scaling.describe_scalable_targets(**ours)["ScalableTargets"]
        policies = self.scaling.describe_scaling_policies(**ours)["ScalingPolicies"]
        actions = self.scaling.describe_scheduled_actions(**ours)["ScheduledActions"]
        created = {"CreationTime", "PolicyARN", "ScalableTargetARN"}
        scaling = [
            {key: value for key, value in each.items() if key not in created}
            for each in [*targets, *policies, *actions]
        ]
        return {
            "config": found["EndpointConfigName"],
            "variants": found["ProductionVariants"],
            "tags": tags,
            "scaling": scaling,
        }

    def exists(self) -> bool:
        return NAME in sagemaker_backends[ACCOUNT_ID][REGION].endpoints

    def remove(self) -> None:
        """End a deletion that the test began with ``set_status``."""
        sagemaker_backends[ACCOUNT_ID][REGION].endpoints.pop(NAME, None)

    def set_status(self, status: str) -> None:
        sagemaker_backends[ACCOUNT_ID][REGION].endpoints[NAME].endpoint_status = status


def use(account: NightAccount, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the commands use the account, in a folder, without waiting."""
    monkeypatch.setattr(options, "make_session", lambda *_arguments: account)
    clock = SimpleNamespace(sleep=lambda _seconds: account.while_waiting())
    monkeypatch.setattr("constructs_triton_tools.aws.waiting.time", clock)
    monkeypatch.chdir(folder)


def stop(*options: str) -> int:
    return main(["stop", NAME, "--yes", *options])


def start(*options: str) -> int:
    return main(["start", NAME, "--yes", *options])


def phase() -> str:
    return str(json.loads(FILE.read_text())["phase"])
