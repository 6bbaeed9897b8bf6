"""Each option that AWS describes is in the template of the written app, with the same value."""

from __future__ import annotations

import json
import keyword
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import assertions

from constructs_triton_tools.operations.adopting.adopt import add_stack
from constructs_triton_tools.operations.adopting.findings import Adoption
from constructs_triton_tools.operations.adopting.models import ModelReader
from constructs_triton_tools.operations.adopting.reading import Downloads
from constructs_triton_tools.operations.adopting.running_endpoint import RunningEndpoint
from constructs_triton_tools.operations.adopting.stack.app_text import app_text
from constructs_triton_tools.operations.adopting.stack.stack_code import StackCode

ARN = "arn:aws:sagemaker:us-east-1:123456789012"
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
TOPIC = "arn:aws:sns:us-east-1:123456789012:"
IMAGE = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.02-py3"
RESOURCE = "endpoint/notebook/variant/AllTraffic"
TARGET = {"ResourceId": RESOURCE, "MinCapacity": 1, "MaxCapacity": 4}
Answer = dict[str, Any]


class Objects(Downloads):
    """A bucket in which nothing can be read."""

    def __init__(self) -> None:
        self.directory, self._max_bytes = Path(), 0

    def list(self, bucket: str, prefix: str) -> list[dict[str, Any]]:  # noqa: ARG002 - nothing is there
        return []

    def head(self, bucket: str, key: str) -> dict[str, Any] | None:  # noqa: ARG002 - likewise
        return None


def written(
    tmp_path: Path,
    *,
    variant: Answer | None = None,
    config: Answer | None = None,
    endpoint: Answer | None = None,
    container: Answer | None = None,
    scaling: Mapping[str, Any] | None = None,
    tag_digests: Mapping[str, str] | None = None,
    is_multi_model: bool = False,
) -> tuple[Adoption, assertions.Template | None]:
    """Return what was found, and the template of the app; ``None`` if no app is possible."""
    data = "s3://models/many/" if is_multi_model else "s3://models/one/model.tar.gz"
    default = {} if is_multi_model else {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "first"}
    mode = "MultiModel" if is_multi_model else "SingleModel"
    given = {
        "Image": IMAGE,
        "ModelDataUrl": data,
        "Mode": mode,
        "Environment": default,
        **(container or {}),
    }
    production = {
        "VariantName": "AllTraffic",
        "ModelName": "first",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1.0,
        **(variant or {}),
    }
    running = RunningEndpoint(
        endpoint={
            "EndpointName": "notebook",
            "EndpointArn": f"{ARN}:endpoint/notebook",
            "EndpointStatus": "InService",
            "EndpointConfigName": "config",
            "ProductionVariants": [{"VariantName": "AllTraffic"}],
            **(endpoint or {}),
        },
        config={"ProductionVariants": [production], **(config or {})},
        models={"first": {"ModelName": "first", "PrimaryContainer": given}},
        components=(),
        tags={},
        stack=None,
        targets=(scaling or {}).get("targets", ()),
        policies=(scaling or {}).get("policies", ()),
        actions=(scaling or {}).get("actions", ()),
        alarms=(),
        log_retention_days=None,
        roles=(),
        vpc_ids={},
        tag_digests=tag_digests or {},
    )
    adoption = Adoption("notebook")
    code = StackCode(running, adoption)
    models = ModelReader(Objects(), tmp_path, adoption)
    add_stack(code, models, "import")
    if adoption.is_impossible:
        return adoption, None
    (tmp_path / "app.py").write_text(app_text(code))
    stack = runpy.run_path(str(tmp_path / "app.py"))["EndpointStack"](cdk.App(), "Endpoint")
    return adoption, assertions.Template.from_stack(stack)


def only(template: assertions.Template | None, resource_type: str) -> Any:
    assert template is not None
    (found,) = cast(dict[str, Any], template.find_resources(resource_type)).values()
    return found["Properties"]


ALARM = [{"AlarmName": "errors"}]
DEPLOYMENTS: dict[str, Answer] = {
    "rolling": {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50},
            "WaitIntervalInSeconds": 90,
            "RollbackMaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1},
            "MaximumExecutionTimeoutInSeconds": 3600,
        },
        "AutoRollbackConfiguration": {"Alarms": ALARM},
    },
    "canary": {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {
                "Type": "CANARY",
                "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1},
                "WaitIntervalInSeconds": 600,
            },
            "TerminationWaitInSeconds": 30,
        },
        "AutoRollbackConfiguration": {"Alarms": ALARM},
    },
    "linear": {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {
                "Type": "LINEAR",
                "LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": 20},
                "WaitIntervalInSeconds": 60,
            },
            "MaximumExecutionTimeoutInSeconds": 7200,
        }
    },
    "all at once": {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0},
            "TerminationWaitInSeconds": 120,
        }
    },
}


@pytest.mark.parametrize("deployment", DEPLOYMENTS.values(), ids=DEPLOYMENTS)
def test_deployment(tmp_path: Path, deployment: Answer) -> None:
    """The app updates the endpoint as the last update did."""
    _, template = written(tmp_path, endpoint={"LastDeploymentConfig": deployment})
    assert only(template, "AWS::SageMaker::Endpoint")["DeploymentConfig"] == deployment


VARIANTS: dict[str, Answer] = {
    "timeouts": {
        "ModelDataDownloadTimeoutInSeconds": 1200,
        "ContainerStartupHealthCheckTimeoutInSeconds": 90,
        "VariantInstanceProvisionTimeoutInSeconds": 600,
    },
    "machine": {
        "EnableSSMAccess": True,
        "InferenceAmiVersion": "al2-ami-sagemaker-inference-gpu-2",
    },
    "reservation": {
        "CapacityReservationConfig": {
            "CapacityReservationPreference": "capacity-reservations-only",
            "MlReservationArn": f"{ARN}:training-plan/plan",
        }
    },
    "core dump": {"CoreDumpConfig": {"DestinationS3Uri": "s3://dumps/core", "KmsKeyId": KEY}},
    "routing": {"RoutingConfig": {"RoutingStrategy": "RANDOM"}},
    "default routing": {"RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}},
    "volume": {"InstanceType": "ml.c5.xlarge", "VolumeSizeInGB": 60},
    "fleet": {"InitialInstanceCount": 3, "InitialVariantWeight": 0.5, "VariantName": "main"},
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_variant(tmp_path: Path, variant: Answer) -> None:
    """The variant has every value that it has today."""
    _, template = written(tmp_path, variant=variant)
    (found,) = only(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert {name: found.get(name) for name in variant} == variant


CONFIGS: dict[str, Answer] = {
    "key": {"KmsKeyId": KEY},
    "metrics": {
        "MetricsConfig": {
            "MetricPublishFrequencyInSeconds": 10,
            "EnableEnhancedMetrics": True,
            "EnableDetailedObservability": False,
        }
    },
    "capture": {
        "DataCaptureConfig": {
            "EnableCapture": False,
            "InitialSamplingPercentage": 5,
            "DestinationS3Uri": "s3://captured/some/prefix",
            "KmsKeyId": KEY,
            "CaptureOptions": [{"CaptureMode": "InputAndOutput"}],
            "CaptureContentTypeHeader": {"CsvContentTypes": ["text/csv"]},
        }
    },
    "asynchronous": {
        "AsyncInferenceConfig": {
            "OutputConfig": {
                "S3OutputPath": "s3://responses/done",
                "S3FailurePath": "s3://responses/failed",
                "KmsKeyId": KEY,
                "NotificationConfig": {
                    "SuccessTopic": f"{TOPIC}done",
                    "ErrorTopic": f"{TOPIC}failed",
                    "IncludeInferenceResponseIn": ["ERROR_NOTIFICATION_TOPIC"],
                },
            },
            "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 8},
        }
    },
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_configuration(tmp_path: Path, config: Answer) -> None:
    """The endpoint configuration has every value that it has today."""
    _, template = written(tmp_path, config=config)
    found = only(template, "AWS::SageMaker::EndpointConfig")
    assert {name: found.get(name) for name in config} == config


def test_cache_of_multi_model_endpoint(tmp_path: Path) -> None:
    """A multi-model endpoint keeps its prefix and its cache setting."""
    cache = {"MultiModelConfig": {"ModelCacheSetting": "Disabled"}}
    _, template = written(tmp_path, container=cache, is_multi_model=True)
    container = only(template, "AWS::SageMaker::Model")["PrimaryContainer"]
    assert container["MultiModelConfig"] == {"ModelCacheSetting": "Disabled"}
    assert container["ModelDataUrl"] == "s3://models/many/"


def scaled(**of_each_kind: Answer) -> dict[str, Any]:
    """A scaled variant with one policy or action of each kind."""
    given = {kind: [{"ResourceId": RESOURCE, **each}] for kind, each in of_each_kind.items()}
    return {"scaling": {"targets": [TARGET], **given}}


def tracking(policy: Answer) -> Answer:
    kind = "TargetTrackingScaling"
    return {"PolicyName": "policy", "PolicyType": kind, f"{kind}PolicyConfiguration": policy}


def _custom(metric: str, value: float, **changes: Any) -> Answer:
    dimensions = {"EndpointName": "notebook", "VariantName": "AllTraffic"}
    specification = {
        "MetricName": metric,
        "Namespace": "/aws/sagemaker/Endpoints",
        "Dimensions": [{"Name": name, "Value": each} for name, each in dimensions.items()],
        "Statistic": "Average",
        "Unit": "Percent",
        **changes,
    }
    return {
        "TargetValue": value,
        "CustomizedMetricSpecification": specification,
        "ScaleInCooldown": 500,
        "ScaleOutCooldown": 100,
    }


POLICIES = {
    "GPU": _custom("GPUUtilization", 70),
    "GPU memory": _custom("GPUMemoryUtilization", 60),
    "CPU of four vCPUs": _custom("CPUUtilization", 240),
    "CPU of a share": _custom("CPUUtilization", 2),
    "maximum": _custom("GPUUtilization", 80, Statistic="Maximum"),
    "own metric": _custom("queue", 5, Namespace="mine", Dimensions=[], Unit="Count/Second"),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_policy(tmp_path: Path, policy: Answer) -> None:
    """A policy on any metric keeps its target and its cooldowns."""
    _, template = written(tmp_path, **scaled(policies=tracking(policy)))
    found = only(template, "AWS::ApplicationAutoScaling::ScalingPolicy")
    carried = _named(found["TargetTrackingScalingPolicyConfiguration"])
    carried["CustomizedMetricSpecification"].setdefault("Dimensions", [])
    assert (found["PolicyName"], carried) == ("policy", policy)


def _named(policy: Any) -> Answer:
    """Return a policy with the name of the endpoint in place of the reference to it."""
    reference = json.dumps({"Fn::GetAtt": ["Endpoint", "EndpointName"]})
    found: Answer = json.loads(json.dumps(policy).replace(reference, '"notebook"'))
    return found


CAPTURED: Answer = {"InitialSamplingPercentage": 1, "CaptureOptions": []}
NOT_CARRIED: dict[str, tuple[str, Answer]] = {
    "property that is new": ("new-feature", {"variant": {"NewFeature": {"Level": 1}}}),
    "explainer": (
        "explainer-config",
        {"config": {"ExplainerConfig": {"ClarifyExplainerConfig": {}}}},
    ),
    "capture of a whole bucket": (
        "data-capture-prefix",
        {"config": {"DataCaptureConfig": {**CAPTURED, "DestinationS3Uri": "s3://b"}}},
    ),
    "key by its alias": ("kms-key-alias", {"config": {"KmsKeyId": "alias/own"}}),
    "registry in the VPC": (
        "image-config",
        {"container": {"ImageConfig": {"RepositoryAccessMode": "Vpc"}}},
    ),
    "suspended scaling": (
        "suspended-state",
        {
            "scaling": {
                "targets": [{**TARGET, "SuspendedState": {"DynamicScalingInSuspended": True}}]
            }
        },
    ),
    "steps": (
        "step-scaling-policy",
        scaled(policies={"PolicyName": "steps", "PolicyType": "StepScaling"}),
    ),
    "metric math": (
        "metric-math-policy",
        scaled(
            policies=tracking(
                {"TargetValue": 1, "CustomizedMetricSpecification": {"Metrics": [{"Id": "m"}]}}
            )
        ),
    ),
    "action with an end": (
        "scheduled-action",
        scaled(
            actions={
                "ScheduledActionName": "night",
                "Schedule": "cron(0 20 * * ? *)",
                "EndTime": "2030-01-01",
            }
        ),
    ),
}


@pytest.mark.parametrize(("code", "answers"), NOT_CARRIED.values(), ids=NOT_CARRIED)
def test_what_is_not_carried_over_has_a_code(tmp_path: Path, code: str, answers: Answer) -> None:
    """What the app does not have is a problem with a code, and the rest of the app synthesizes."""
    adoption, template = written(tmp_path, **answers)
    assert [each.code for each in adoption.problems] == [code]
    assert template is not None


def test_deleted_model_has_no_app(tmp_path: Path) -> None:
    """A variant whose model was deleted cannot be written, and cannot be accepted."""
    adoption, template = written(tmp_path, variant={"ModelName": "gone"})
    assert ([each.code for each in adoption.problems], template) == (["deleted-model"], None)
    assert adoption.open_problems(["deleted-model"]) == adoption.problems


def test_moved_tag_is_replaced_by_the_digest_that_runs(tmp_path: Path) -> None:
    """If a tag names another image by now, the app pins the digest that the instances run."""
    digest = "sha256:" + "a" * 64
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/serving:latest"
    deployed = [{"SpecifiedImage": image, "ResolvedImage": f"serving@{digest}"}]
    running = {"ProductionVariants": [{"VariantName": "AllTraffic", "DeployedImages": deployed}]}
    for now, expected in ((digest, ":latest"), ("sha256:" + "b" * 64, f"@{digest}")):
        folder = tmp_path / expected[1:8]
        folder.mkdir()
        _, template = written(
            folder, container={"Image": image}, endpoint=running, tag_digests={image: now}
        )
        found = only(template, "AWS::SageMaker::Model")["PrimaryContainer"]["Image"]
        assert str(found).rstrip("']}").endswith(f"serving{expected}")


def test_secret_may_have_any_name(tmp_path: Path) -> None:
    """Neither names of Python, nor those of the app,
    nor ids of the stack collide with a parameter.
    """
    taken = [*keyword.kwlist, "super", "str", "match", "cdk", "s3", "path", "models", "endpoint"]
    taken += ["ENDPOINT_NAME", "BOOTSTRAP_VERSION"]
    environment = {name.upper(): f"ghp_{'a' * 36}" for name in taken}
    served = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "first"}
    adoption, template = written(tmp_path, container={"Environment": environment | served})
    assert not adoption.problems
    given = only(template, "AWS::SageMaker::Model")["PrimaryContainer"]["Environment"]
    assert {each["Ref"] for name, each in given.items() if name in environment} == set(
        adoption.parameters
    )
    assert len(adoption.parameters) == len(environment)
