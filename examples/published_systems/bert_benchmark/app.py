"""BERT-large on the instances of the benchmark's plan, scaling on invocations per instance.

``npx cdk synth`` uses the cheapest configuration within 500 ms. Choose another row of the benchmark
with ``-c configuration=trt-ig-db -c instance_type=ml.g4dn.xlarge``.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import benchmark
import variants
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    RepositoryCheck,
    TritonEndpoint,
    TritonModelRepository,
)
from constructs_triton_tools.planning import Plan


class BertStack(cdk.Stack):
    """One endpoint with the size of the plan."""

    def __init__(
        self, scope: Construct, id: str, *, plan: Plan, models: Path, endpoint_name: str
    ) -> None:
        super().__init__(scope, id)
        # Without the model file the stack can be synthesized, but not deployed.
        check = RepositoryCheck.on(acknowledge=["model-file-missing"])
        source = ModelSource.from_directory(models)
        repository = TritonModelRepository(self, "Models", source=source, check=check)
        endpoint = TritonEndpoint(
            self,
            "Endpoint",
            model_repository=repository,
            model=variants.MODEL,
            instance_type=InstanceType.of(plan.instance_type),
            initial_instance_count=plan.initial_instance_count,
            endpoint_name=endpoint_name,
        )
        scaling = endpoint.auto_scale_instance_count(
            min_capacity=plan.min_capacity, max_capacity=plan.max_capacity
        )
        scaling.scale_on_invocations_per_instance(
            "Invocations", target_invocations_per_minute=plan.target_invocations_per_minute
        )


app = cdk.App()
plan = benchmark.plan_for(
    app.node.try_get_context("configuration"), app.node.try_get_context("instance_type")
)
bert = BertStack(
    app,
    "Bert",
    plan=plan,
    models=variants.write_variant(plan.configuration),
    endpoint_name=f"bert-{plan.configuration}",
)
if not variants.model_file(plan.configuration).exists():
    cdk.Annotations.of(bert).add_warning_v2(
        "published-systems:model-files-missing",
        f"no {variants.model_file(plan.configuration).name}: see the README",
    )
BertStack(
    app,
    "SmallBert",
    plan=plan,
    models=variants.write_small_variant(plan.configuration),
    endpoint_name="small-bert",
)
app.synth()
