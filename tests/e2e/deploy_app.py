"""The stack that the tests deploy, update and destroy,
synthesized once for each of its variants.
"""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct
from deploy_synth import (
    DECLARED,
    GPU_TARGET,
    INVOCATIONS_TARGET,
    LATENCY_THRESHOLD,
    STACK,
    VARIANTS,
    Variant,
)

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVariant,
)
from constructs_triton.cdk.repository.model_repository import contents_of

CONFIG = """backend: "python"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
instance_group { kind: KIND_CPU }
"""
MODEL = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            self.answer(pb_utils.get_input_tensor_by_name(each, "x").as_numpy())
            for each in requests
        ]

    def answer(self, x):
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x + {constant}.0)])
"""


class ServedStack(cdk.Stack):
    """A single-model endpoint, a scaled multi-model endpoint, and an alarm and dashboard."""

    def __init__(self, scope: Construct, id: str, *, models: Path, variant: Variant) -> None:
        super().__init__(scope, id)
        instance_type = InstanceType.of(variant.instance_type)
        repository = TritonModelRepository(
            self, "Models", source=ModelSource.from_directory(models)
        )
        self.repository = repository
        single = TritonEndpoint(
            self, "Single", model_repository=repository, model="alpha", instance_type=instance_type
        )
        many = TritonMultiModelEndpoint(
            self,
            "Many",
            model_repository=repository,
            instance_type=instance_type,
            container_startup_health_check_timeout=cdk.Duration.seconds(
                variant.startup_timeout_seconds
            ),
        )
        count = many.auto_scale_instance_count(min_capacity=1, max_capacity=variant.max_capacity)
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=GPU_TARGET)
        count.scale_on_invocations_per_instance(
            "Invocations", target_invocations_per_minute=INVOCATIONS_TARGET
        )
        if variant.fleets:
            self._add_fleets(repository, variant)
        latency = many.metric_model_latency()
        latency.create_alarm(self, "Slow", threshold=LATENCY_THRESHOLD, evaluation_periods=3)
        dashboard = cloudwatch.Dashboard(self, "Dashboard")
        dashboard.add_widgets(cloudwatch.GraphWidget(title="Latency", left=[latency]))
        if variant.has_broken_dashboard:
            broken = cloudwatch.CfnDashboard(self, "Broken", dashboard_body="not json")
            broken.node.add_dependency(many, single, count)
        cdk.CfnOutput(self, "SingleName", value=single.endpoint_name)
        cdk.CfnOutput(self, "ManyName", value=many.endpoint_name)
        cdk.CfnOutput(self, "ModelsUrl", value=repository.model_data_url)

    def _add_fleets(self, repository: TritonModelRepository, variant: Variant) -> None:
        fleets = TritonEndpoint(
            self,
            "Fleets",
            model_repository=repository,
            model="beta",
            instance_type=InstanceType.of(variant.instance_type),
            variants=[TritonVariant(variant_name=name) for name in variant.fleets],
        )
        for name in variant.scaled_fleets:
            count = fleets.variant(name).auto_scale_instance_count(min_capacity=1, max_capacity=2)
            count.scale_on_invocations_per_instance("Invocations", target_invocations_per_minute=60)
        cdk.CfnOutput(self, "FleetsName", value=fleets.endpoint_name)

    def declared(self) -> dict[str, dict[str, str]]:
        """Each model's target model, and the key of its archive among the assets."""
        return {
            name: {
                "target_model": str(target_model),
                "object_key": contents_of(self.repository).locate(name, self).url.rsplit("/", 1)[1],
            }
            for name, target_model in self.repository.target_models.items()
        }


def write_models(directory: Path, models: tuple[tuple[str, int], ...]) -> Path:
    """A repository of Python models that add a constant."""
    for name, constant in models:
        (directory / name / "1").mkdir(parents=True)
        (directory / name / "config.pbtxt").write_text(f'name: "{name}"\n{CONFIG}')
        (directory / name / "1" / "model.py").write_text(MODEL.format(constant=constant))
    return directory


def synthesize(directory: Path, *names: str) -> Path:
    """Write the assembly of each variant to a folder of its name below the directory."""
    for name in names:
        variant = VARIANTS[name]
        models = write_models(directory / "models" / name, variant.models)
        app = cdk.App(outdir=str(directory / name), builtin_cloud_formation_validation=False)
        stack = ServedStack(app, STACK, models=models, variant=variant)
        app.synth()
        (directory / name / DECLARED).write_text(json.dumps(stack.declared()))
    return directory
