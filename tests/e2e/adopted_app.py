"""An endpoint made by boto3 calls, and the stack that adopts it,
synthesized once for each of its states.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from constructs import Construct
from deploy_app import write_models

from cdk_rehearse import Behaviour, SimulatedAccount
from cdk_rehearse.stacks.stack import Stack
from constructs_triton import InstanceType, ModelSource, TritonEndpoint, TritonModelRepository
from constructs_triton_core.cloud_assembly.template import Template

STACK = "Adopting"
NAME = "DEMO-digits-2025-11-02"
INSTANCE_TYPE = "ml.c6i.large"
DESIRED, MAXIMUM = 3, 8
TAGS = {"team": "vision", "cost": "7"}
Deploy = Callable[..., Stack]
_NUMBERS = itertools.count()
_TRUST = '{"Version": "2012-10-17", "Statement": []}'


@dataclass(frozen=True)
class State:
    """The differences between the states of the stack."""

    constant: int = 1
    instance_type: str = INSTANCE_TYPE
    initial_instance_count: int = DESIRED
    scales: bool = True
    variant_name: str = "AllTraffic"
    id: str = "Digits"
    removal_policy: cdk.RemovalPolicy | None = None
    tag: str | None = None


_FIRST = State()
_DESTROYED = replace(_FIRST, removal_policy=cdk.RemovalPolicy.DESTROY)
STATES = {
    "first": _FIRST,
    "second": replace(_FIRST, constant=2),
    "other_type": replace(_FIRST, instance_type="ml.c6i.xlarge"),
    "unscaled": replace(_FIRST, scales=False),
    "unscaled_other_type": replace(_FIRST, scales=False, instance_type="ml.c6i.xlarge"),
    "smaller": replace(_FIRST, scales=False, initial_instance_count=1),
    "other_variant": replace(_FIRST, variant_name="Green"),
    "other_id": replace(_FIRST, id="Numbers", constant=2),
    "unscaled_other_id": replace(_FIRST, id="Numbers", constant=2, scales=False),
    "destroyed": replace(_DESTROYED, tag="research"),
    "destroyed_again": replace(_DESTROYED, constant=2),
}


class AdoptingStack(cdk.Stack):
    """The stack that adopts the endpoint."""

    def __init__(self, scope: Construct, id: str, *, models: Path, state: State) -> None:
        super().__init__(scope, id)
        endpoint = TritonEndpoint(
            self,
            state.id,
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(models)
            ),
            model="alpha",
            instance_type=InstanceType.of(state.instance_type),
            initial_instance_count=state.initial_instance_count,
            endpoint_name=NAME,
            variant_name=state.variant_name,
            adopt_existing=True,
            removal_policy=state.removal_policy,
        )
        if state.scales:
            count = endpoint.auto_scale_instance_count(min_capacity=2, max_capacity=5)
            count.scale_on_invocations_per_instance(
                "Invocations", target_invocations_per_minute=600
            )
        if state.tag is not None:
            cdk.Tags.of(endpoint).add("team", state.tag)
            cdk.Tags.of(endpoint).add("made-by", "cdk")


def synthesize(directory: Path, *names: str) -> Path:
    """Write the assembly of each state to a folder of its name below the directory."""
    for name in names or STATES:
        state = STATES[name]
        models = directory / "models" / str(state.constant)
        if not models.exists():
            write_models(models, (("alpha", state.constant),))
        app = cdk.App(outdir=str(directory / name), builtin_cloud_formation_validation=False)
        AdoptingStack(app, STACK, models=models, state=state)
        app.synth()
    return directory


class Notebook:
    """The endpoint as a notebook makes it: boto3 calls, a name with a date, scaling,
    and no stack.
    """

    def __init__(self, aws: SimulatedAccount) -> None:
        self.number = next(_NUMBERS)
        self.name, self.aws = f"{NAME}-{self.number}", aws
        self.sagemaker = aws.client("sagemaker")
        self.scaling = aws.client("application-autoscaling")
        self.config = f"{self.name}-config"
        self.resource_id = f"endpoint/{self.name}/variant/AllTraffic"
        self._key = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": self.resource_id,
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        }

    def create(self, **variant: Any) -> Notebook:
        """Create model, configuration and endpoint, and scale it out;
        ``variant`` are further members.
        """
        self.role = self.aws.client("iam").create_role(
            RoleName=f"{self.name}-role", AssumeRolePolicyDocument=_TRUST
        )["Role"]["Arn"]
        image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.09-py3"
        self.aws.client("iam").put_role_policy(
            RoleName=f"{self.name}-role",
            PolicyName="all",
            PolicyDocument='{"Version": "2012-10-17", "Statement": '
            '[{"Effect": "Allow", "Action": "*", "Resource": "*"}]}',
        )
        self.sagemaker.create_model(
            ModelName=f"{self.name}-model",
            ExecutionRoleArn=self.role,
            PrimaryContainer={"Image": image},
        )
        only = {
            "VariantName": "AllTraffic",
            "ModelName": f"{self.name}-model",
            "InstanceType": INSTANCE_TYPE,
            "InitialInstanceCount": 1,
            "InitialVariantWeight": 1,
            **variant,
        }
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=self.config, ProductionVariants=[only]
        )
        self.sagemaker.create_endpoint(
            EndpointName=self.name,
            EndpointConfigName=self.config,
            Tags=[{"Key": key, "Value": value} for key, value in TAGS.items()],
        )
        self.set_count(DESIRED)
        return self

    def set_count(self, count: int) -> None:
        """Scale the endpoint, as Application Auto Scaling does."""
        self.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=self.name,
            DesiredWeightsAndCapacities=[
                {"VariantName": "AllTraffic", "DesiredInstanceCount": count}
            ],
        )

    def scale(self) -> Notebook:
        """Register the variant for scaling, with a policy and a scheduled action."""
        self.scaling.register_scalable_target(**self._key, MinCapacity=1, MaxCapacity=MAXIMUM)
        tracking = {
            "TargetValue": 70.0,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
            },
        }
        self.scaling.put_scaling_policy(
            **self._key,
            PolicyName="by-hand",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=tracking,
        )
        self.scaling.put_scheduled_action(
            **self._key,
            ScheduledActionName="morning",
            Schedule="cron(0 8 * * ? *)",
            ScalableTargetAction={"MinCapacity": 2},
        )
        return self

    # What it is now.

    def described(self) -> dict[str, Any]:
        found: dict[str, Any] = self.sagemaker.describe_endpoint(EndpointName=self.name)
        return found

    @property
    def running(self) -> str:
        """The name of the configuration that it runs."""
        name: str = self.described()["EndpointConfigName"]
        return name

    @property
    def count(self) -> int:
        (variant,) = self.described()["ProductionVariants"]
        count: int = variant["DesiredInstanceCount"]
        return count

    @property
    def tags(self) -> dict[str, str]:
        found = self.sagemaker.list_tags(ResourceArn=self.described()["EndpointArn"])["Tags"]
        return {each["Key"]: each["Value"] for each in found}

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The bounds of scaling, or ``None`` if the variant is not registered."""
        found = self.scaling.describe_scalable_targets(
            ServiceNamespace="sagemaker", ResourceIds=[self.resource_id]
        )["ScalableTargets"]
        return (found[0]["MinCapacity"], found[0]["MaxCapacity"]) if found else None

    @property
    def policies(self) -> list[str]:
        found = self.scaling.describe_scaling_policies(**self._key)["ScalingPolicies"]
        return [each["PolicyName"] for each in found]

    @property
    def actions(self) -> list[str]:
        found = self.scaling.describe_scheduled_actions(**self._key)["ScheduledActions"]
        return [each["ScheduledActionName"] for each in found]

    @property
    def has_record(self) -> bool:
        """Whether the Parameter Store keeps what the endpoint was."""
        found = self.aws.client("ssm").describe_parameters()["Parameters"]
        return f"/constructs-triton/adopted/{self.name}" in [each["Name"] for each in found]

    def everything(self) -> dict[str, Any]:
        """What a rollback has to restore."""
        return {
            "config": self.running,
            "count": self.count,
            "tags": self.tags,
            "bounds": self.bounds,
            "policies": self.policies,
            "actions": self.actions,
            "record": self.has_record,
        }


def template_of(notebook: Notebook, assembly: Path) -> dict[str, Any]:
    """The template of a state that adopts this endpoint."""
    text = (assembly / f"{STACK}.template.json").read_text()
    # ARNs have the name in lower case.
    text = text.replace(NAME, notebook.name).replace(NAME.lower(), notebook.name.lower())
    body: dict[str, Any] = json.loads(text)
    return body


def adopt(notebook: Notebook, assemblies: Path, state: str, stack_name: str | None = None) -> Stack:
    """Deploy a state of the stack that adopts the endpoint;
    each endpoint has a stack of its own.
    """
    name = f"Adopting{notebook.number}" if stack_name is None else stack_name
    template = Template(template_of(notebook, assemblies / state))
    return notebook.aws.deploy(assemblies / state, STACK, stack_name=name, template=template)


# Fixtures of the tests that deploy many states.


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("assemblies"))


@pytest.fixture
def notebook(aws: SimulatedAccount) -> Notebook:
    """An endpoint that scales, with a name of its own, in an account that is calm at first."""
    aws.behaviour = Behaviour()
    return Notebook(aws).create().scale()


@pytest.fixture
def deploy(assemblies: Path, notebook: Notebook) -> Deploy:
    """Deploys a state of the stack, which adopts the notebook's endpoint."""
    return partial(adopt, notebook, assemblies)
