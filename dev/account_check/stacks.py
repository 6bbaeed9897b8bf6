"""The stacks, each in three releases that are deployed one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from constructs_triton import (
    AsyncInferenceConfig,
    Deployment,
    InstancePool,
    InstanceType,
    TritonMultiModelEndpoint,
    TritonVariant,
)

from .check_stack import CheckStack
from .component_stacks import ComponentConfigs, ComponentInside, ComponentUpdates

RELEASES = (1, 2, 3)
MISSING_ALARM = "constructs-triton-account-check-missing"
_CPU, _GPU = InstanceType.of("ml.m5.large"), InstanceType.of("ml.g4dn.xlarge")


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
    """Releases 2 and 3 change the endpoint but not its configuration: scaling,
    then a rollback alarm.
    """

    def add_endpoints(self) -> None:
        endpoint = self.endpoint("Endpoint", self.repository())
        if self.release > 1:
            count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
            count.scale_on_invocations_per_instance(
                "Invocations", target_invocations_per_minute=600
            )
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
        queue = self.endpoint(
            "Queue", repository, async_inference=AsyncInferenceConfig(bucket=bucket)
        )
        count = queue.auto_scale_instance_count(min_capacity=0, max_capacity=1)
        count.scale_on_backlog("Backlog", target_backlog_per_instance=100)


class Accelerated(CheckStack):
    """A multi-model endpoint on a GPU instance of type g4dn,
    with the inference AMI of the library.
    """

    def add_endpoints(self) -> None:
        repository = self.repository(kind="KIND_GPU")
        endpoint = TritonMultiModelEndpoint(
            self, "Endpoint", model_repository=repository, instance_type=_GPU, verify_update=False
        )
        cdk.CfnOutput(self, "Name", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "TargetModel", value=str(repository.target_models["add"]))


class Pooled(CheckStack):
    """A scaled endpoint with two instance types, whose order changes in release 2."""

    def add_endpoints(self) -> None:
        types = [InstanceType.of(name) for name in ("ml.m5.large", "ml.c5.large")]
        pools = [InstancePool(each) for each in (types if self.release == 1 else reversed(types))]
        endpoint = self.endpoint(
            "Endpoint", self.repository(), instance_type=None, instance_pools=pools
        )
        # The question also creates a multi-model container, whose prefix the role must read.
        read = ["s3:GetObject", "s3:ListBucket"]
        endpoint.add_to_role_policy(
            iam.PolicyStatement(actions=read, resources=["arn:aws:s3:::cdk-*"])
        )
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
        loads = {each.name: 4 for each in types}
        count.scale_on_concurrent_requests_by_type("Load", max_concurrent_requests=loads)


class Stopped(CheckStack):
    """A scaled endpoint with two instance types and a deployment configuration,
    which is stopped.
    """

    def add_endpoints(self) -> None:
        pools = [InstancePool(InstanceType.of(name)) for name in ("ml.m5.large", "ml.c5.large")]
        endpoint = self.endpoint(
            "Endpoint",
            self.repository(constant=self.release),
            instance_type=None,
            instance_pools=pools,
            deployment=Deployment.all_at_once(),
        )
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
        count.scale_on_concurrent_requests("Load", target_concurrent_requests=4)


class Published(CheckStack):
    """An endpoint that publishes Triton's own metrics, and scales out on the time in the queue."""

    def add_endpoints(self) -> None:
        endpoint = self.endpoint("Endpoint", self.repository(), container_metrics=True)
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
        count.scale_on_concurrent_requests("Load", target_concurrent_requests=4)
        count.scale_out_on_queue_time("Queue", target_queue_time=cdk.Duration.millis(50))


class Imported(CheckStack):
    """An endpoint whose configuration another endpoint uses, which no stack has created."""

    def add_endpoints(self) -> None:
        self.endpoint("Endpoint", self.repository())


STACKS: dict[str, Callable[..., CheckStack]] = {
    f"TritonAccountCheck{each.__name__}": each
    for each in (
        Returned,
        MissingAlarm,
        Unchanged,
        Retained,
        Accelerated,
        ComponentUpdates,
        ComponentConfigs,
        ComponentInside,
        Pooled,
        Stopped,
        Published,
        Imported,
    )
}


def synthesize(directory: Path) -> None:
    """Write an assembly of all stacks for each release: ``directory/1`` and so on."""
    for release in RELEASES:
        app = cdk.App(outdir=str(directory / str(release)))
        for name, make in STACKS.items():
            make(app, name, models=directory / "models", release=release)
        app.synth()
