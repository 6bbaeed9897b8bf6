"""The five stacks, each in three releases that are deployed one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton import (
    AsyncInferenceConfig,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVariant,
)

__all__ = ["RELEASES", "STACKS", "synthesize"]

RELEASES = (1, 2, 3)
MISSING_ALARM = "constructs-triton-account-check-missing"
_CPU, _GPU = InstanceType.of("ml.m5.large"), InstanceType.of("ml.g4dn.xlarge")
_CONFIG = """name: "add"
backend: "python"
max_batch_size: 8
input {{ name: "x" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "y" data_type: TYPE_FP32 dims: 1 }}
instance_group {{ kind: {kind} }}
"""
_MODEL = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        if {fails}:
            raise RuntimeError("account check: this release cannot start")

    def execute(self, requests):
        return [self.add(pb_utils.get_input_tensor_by_name(each, "x").as_numpy()) for each in requests]

    def add(self, x):
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x + {constant}.0)])
"""


class CheckStack(cdk.Stack):
    """A stack with a repository of one small Python model, which differs between releases."""

    def __init__(self, scope: Construct, id: str, *, models: Path, release: int) -> None:
        super().__init__(scope, id)
        cdk.Tags.of(self).add("constructs-triton", "account-check")
        self.models = models
        self.release = release
        self.add_endpoints()

    def add_endpoints(self) -> None:
        """Add what the question is about."""
        raise NotImplementedError

    def repository(
        self, *, constant: int = 0, fails: bool = False, kind: str = "KIND_CPU"
    ) -> TritonModelRepository:
        """The model repository; a changed constant changes the archive."""
        folder = self.models / f"{constant}-{fails}-{kind}"
        version = folder / "add" / "1"
        version.mkdir(parents=True, exist_ok=True)
        (folder / "add" / "config.pbtxt").write_text(_CONFIG.format(kind=kind))
        (version / "model.py").write_text(_MODEL.format(constant=constant, fails=fails))
        source = ModelSource.from_directory(folder)
        return TritonModelRepository(self, "Models", source=source, removal_policy=cdk.RemovalPolicy.DESTROY)

    def endpoint(self, id: str, repository: TritonModelRepository, **options: Any) -> TritonEndpoint:
        """An endpoint of the model, with its name as an output. Nothing verifies its updates."""
        endpoint = TritonEndpoint(
            self,
            id,
            model_repository=repository,
            model="add",
            instance_type=_CPU,
            verify_update=False,
            **options,
        )
        cdk.CfnOutput(self, "Name" if id == "Endpoint" else f"{id}Name", value=endpoint.endpoint_name)
        return endpoint


class Returned(CheckStack):
    """The model of release 2 cannot start, so that SageMaker keeps the old fleet."""

    def add_endpoints(self) -> None:
        fails = self.release > 1
        self.endpoint(
            "Endpoint",
            self.repository(fails=fails),
            container_startup_health_check_timeout=cdk.Duration.seconds(120),
        )


class MissingAlarm(CheckStack):
    """The endpoint names a rollback alarm that does not exist."""

    def add_endpoints(self) -> None:
        endpoint = self.endpoint("Endpoint", self.repository())
        alarm = cloudwatch.Alarm.from_alarm_name(self, "Missing", MISSING_ALARM)
        endpoint.add_rollback_alarms(alarm)


class Unchanged(CheckStack):
    """Releases 2 and 3 change the endpoint but not its configuration: scaling, then a rollback alarm."""

    def add_endpoints(self) -> None:
        endpoint = self.endpoint("Endpoint", self.repository())
        if self.release > 1:
            count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
            count.scale_on_invocations_per_instance("Invocations", target_invocations_per_minute=600)
        if self.release > 2:
            metric = cloudwatch.Metric(namespace="AccountCheck", metric_name="Errors")
            alarm = metric.create_alarm(self, "Errors", threshold=1, evaluation_periods=1)
            endpoint.add_rollback_alarms(alarm)


class Retained(CheckStack):
    """Scaled endpoints: variants are added and removed, and an asynchronous one has no instance."""

    def add_endpoints(self) -> None:
        repository = self.repository(constant=1 if self.release > 1 else 0)
        names = ("blue", "green") if self.release == 2 else ("blue",)
        variants = [TritonVariant(variant_name=name) for name in names]
        fleets = self.endpoint("Fleets", repository, variants=variants)
        count = fleets.variant("blue").auto_scale_instance_count(min_capacity=1, max_capacity=2)
        count.scale_on_invocations_per_instance("Invocations", target_invocations_per_minute=600)
        bucket = s3.Bucket(self, "Responses", removal_policy=cdk.RemovalPolicy.DESTROY)
        queue = self.endpoint("Queue", repository, async_inference=AsyncInferenceConfig(bucket=bucket))
        count = queue.auto_scale_instance_count(min_capacity=0, max_capacity=1)
        count.scale_on_backlog("Backlog", target_backlog_per_instance=100)


class Accelerated(CheckStack):
    """A multi-model endpoint on a GPU instance of type g4dn, with the inference AMI of the library."""

    def add_endpoints(self) -> None:
        repository = self.repository(kind="KIND_GPU")
        endpoint = TritonMultiModelEndpoint(
            self, "Endpoint", model_repository=repository, instance_type=_GPU, verify_update=False
        )
        cdk.CfnOutput(self, "Name", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "TargetModel", value=str(repository.target_models["add"]))


STACKS: dict[str, Callable[..., CheckStack]] = {
    f"TritonAccountCheck{each.__name__}": each
    for each in (Returned, MissingAlarm, Unchanged, Retained, Accelerated)
}


def synthesize(directory: Path) -> None:
    """Write an assembly of all stacks for each release: ``directory/1`` and so on."""
    for release in RELEASES:
        app = cdk.App(outdir=str(directory / str(release)))
        for name, make in STACKS.items():
            make(app, name, models=directory / "models", release=release)
        app.synth()
