"""The demo: an ensemble on GPUs that scales with its requests, and many models that share GPUs.

``npx cdk synth`` writes the template; ``make demo`` runs the first endpoint on your machine.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVariant,
)

REPOSITORIES = Path(__file__).parent / "assets" / "model_repositories"
LATENCY_OBJECTIVE = cdk.Duration.millis(200)
# Each Python model starts with 8 MiB of shared memory and gets more by 1 MiB; 16 threads answer
# requests.
PYTHON_MODELS = TritonEnvironment(
    shm_default_byte_size=cdk.Size.mebibytes(8),
    shm_growth_byte_size=cdk.Size.mebibytes(1),
    thread_count=16,
)


class DemoStack(cdk.Stack):
    """An ensemble that reads handwritten digits,
    and several small models that share one endpoint.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, description="NVIDIA Triton on SageMaker, by constructs_triton")
        self._on_call = actions.SnsAction(sns.Topic(self, "OnCall", enforce_ssl=True))
        self._serve_digits()
        self._serve_catalog()

    def _serve_digits(self) -> None:
        digits = TritonEnsembleEndpoint(
            self,
            "Digits",
            model_repository=TritonModelRepository(
                self, "DigitsModels", source=ModelSource.from_directory(REPOSITORIES / "digits")
            ),
            ensemble="digits",
            # One request in ten goes to a cheaper type of GPU, so that both can be compared.
            variants=[
                TritonVariant(
                    variant_name="a10g",
                    instance_type=InstanceType.of("ml.g5.xlarge"),
                    initial_variant_weight=9,
                ),
                TritonVariant(
                    variant_name="t4",
                    instance_type=InstanceType.of("ml.g4dn.xlarge"),
                    initial_variant_weight=1,
                ),
            ],
            environment=PYTHON_MODELS,
            endpoint_name="digits",
        )
        for variant in digits.variants:
            # One instance answers 50 requests a second within the objective, as a load test found.
            scaling = variant.auto_scale_instance_count(min_capacity=1, max_capacity=5)
            scaling.scale_on_invocations_per_instance("Calls", max_requests_per_second=50)
        alarms = digits.add_alarms(
            actions=[self._on_call], model_latency_objective=LATENCY_OBJECTIVE
        )
        digits.add_rollback_alarms(*alarms.rollback_alarms)
        digits.add_dashboard(model_latency_objective=LATENCY_OBJECTIVE)

    def _serve_catalog(self) -> None:
        catalog = TritonMultiModelEndpoint(
            self,
            "Catalog",
            model_repository=TritonModelRepository(
                self, "CatalogModels", source=ModelSource.from_directory(REPOSITORIES / "catalog")
            ),
            instance_type=InstanceType.of("ml.g5.xlarge"),
            environment=replace(PYTHON_MODELS, model_load_gpu_limit=0.9),
            endpoint_name="catalog",
        )
        catalog.auto_scale_instance_count(min_capacity=1, max_capacity=5).scale_on_gpu_utilization(
            "Gpu",
            target_utilization_percent=60,
            scale_in_cooldown=cdk.Duration.seconds(600),
            scale_out_cooldown=cdk.Duration.seconds(200),
        )
        catalog.add_alarms(actions=[self._on_call], model_latency_objective=LATENCY_OBJECTIVE)
        catalog.add_dashboard(model_latency_objective=LATENCY_OBJECTIVE)


app = cdk.App()
DemoStack(app, "TritonDemo")
app.synth()
