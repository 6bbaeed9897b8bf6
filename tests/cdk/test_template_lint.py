"""The linters that users run, on whole templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_apps import (
    ENVIRONMENT,
    add_ensemble,
    add_many,
    add_repository,
    make_stack,
    synthesize,
    write_repository,
)
from template_lint import lint

from constructs_triton import InstanceType, TritonEnsembleEndpoint


def fill(stack: cdk.Stack, path: Path) -> None:
    """Add all types of endpoints with policies, alarms and dashboards."""
    repository = add_repository(stack, write_repository(path))
    measured: dict[str, Any] = {
        "instance_type": InstanceType.of("ml.g5.12xlarge"),
        "container_metrics": True,
    }
    for endpoint in (
        add_ensemble(stack, repository, "Ensemble", **measured),
        add_many(stack, repository, "Many", instance_type=measured["instance_type"]),
        add_ensemble(
            stack, repository, "Old", endpoint_name="old", adopt_existing=True, **measured
        ),
    ):
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_gpu_utilization("Gpu")
        count.scale_on_invocations_per_instance("Calls", max_requests_per_second=10)
        count.scale_on_concurrent_requests("Busy", target_concurrent_requests=8)
        count.scale_on_model_latency("P99", target_latency=cdk.Duration.millis(90), statistic="p99")
        endpoint.add_alarms(model_latency_objective=cdk.Duration.millis(100))
        endpoint.add_dashboard()
        if isinstance(endpoint, TritonEnsembleEndpoint):
            wait = cdk.Duration.millis(50)
            count.scale_out_on_queue_time("Queue", model="scale", target_queue_time=wait)


@pytest.mark.parametrize("environment", [ENVIRONMENT, None], ids=["region", "agnostic"])
def test_cfn_lint_finds_nothing(tmp_path: Path, environment: cdk.Environment | None) -> None:
    """cfn-lint finds nothing, except W3005."""
    stack = make_stack(environment)
    fill(stack, tmp_path / "models")
    assert [str(each) for each in lint(synthesize(stack))] == []
