"""The stack of the scaling guard's tests, synthesized once for each of its states."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct
from deploy_app import write_models
from guard_states import STACK, STATES, State

from constructs_triton import (
    EndpointVariant,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonVariant,
)


class GuardedStack(cdk.Stack):
    """An endpoint with two scaled variants."""

    def __init__(self, scope: Construct, id: str, *, models: Path, state: State) -> None:
        super().__init__(scope, id)
        self.endpoint = TritonEndpoint(
            self,
            "Fleets",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(models)
            ),
            model="alpha",
            instance_type=InstanceType.of("ml.g5.xlarge"),
            variants=[
                TritonVariant(variant_name=name, instance_type=InstanceType.of(kind))
                for name, kind in state.instance_types.items()
            ],
            scaling_guard=state.has_guard,
        )
        for variant in self.endpoint.variants:
            if variant.variant_name in state.scaled:
                self._scale(variant)
        if state.fails is not None:
            self._fail(state.fails)
        cdk.CfnOutput(self, "Name", value=self.endpoint.endpoint_name)

    def _scale(self, variant: EndpointVariant) -> None:
        count = variant.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
        count.scale_on_invocations_per_instance("Invocations", target_invocations_per_minute=90)
        night = appscaling.Schedule.cron(hour="1", minute="0")
        count.scale_on_schedule("night", schedule=night, min_capacity=1, max_capacity=2)
        if variant.variant_name == "blue":
            count.suspend(dynamic_scaling_out=False, scheduled_scaling=False)

    def _fail(self, where: str) -> None:
        """A resource that cannot be created: before the endpoint's update, after it, or last."""
        broken = cloudwatch.CfnDashboard(self, "Broken", dashboard_body="not json")
        endpoint = self.endpoint.cfn_endpoint
        guard = self.endpoint.node.find_child("ScalingGuard")
        counts = [each.scalable_instance_count for each in self.endpoint.variants]
        if where == "before":
            broken.node.add_dependency(guard.node.find_child("Gate"))
            endpoint.add_resource_dependency(broken)
            return
        broken.node.add_dependency(endpoint)
        for count in counts:
            if count is not None and where == "between":
                count.node.add_dependency(broken)
            elif count is not None:
                broken.node.add_dependency(count)


def synthesize_states(directory: Path) -> Path:
    """Write the assembly of each state to a folder of its name below the directory."""
    models = write_models(directory / "models", (("alpha", 1),))
    for name, state in STATES.items():
        app = cdk.App(outdir=str(directory / name), builtin_cloud_formation_validation=False)
        GuardedStack(app, STACK, models=models, state=state)
        app.synth()
    return directory
