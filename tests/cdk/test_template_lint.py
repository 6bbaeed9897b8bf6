"""Whole templates under the linters that users run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_apps import ENVIRONMENT, add_repository, make_stack, synthesize, write_repository
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from constructs_triton.cdk import InstanceType, TritonEnsembleEndpoint, TritonMultiModelEndpoint


def full_template(path: Path, environment: cdk.Environment | None) -> dict[str, Any]:
    """Both kinds of endpoint with both kinds of policy."""
    stack = make_stack(environment)
    repository = add_repository(stack, write_repository(path))
    served: dict[str, Any] = {
        "model_repository": repository,
        "instance_type": InstanceType.of("ml.g5.12xlarge"),
    }
    for endpoint in (
        TritonEnsembleEndpoint(stack, "Ensemble", ensemble="pipeline", **served),
        TritonMultiModelEndpoint(stack, "Many", **served),
    ):
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_gpu_utilization("Gpu")
        count.scale_on_invocations_per_instance("Calls", max_requests_per_second=10)
    return synthesize(stack)


@pytest.mark.parametrize("environment", [ENVIRONMENT, None], ids=["region", "agnostic"])
def test_cfn_lint_finds_nothing(tmp_path: Path, environment: cdk.Environment | None) -> None:
    """No finding but W3005, the redundant DependsOn that CDK itself writes."""
    template = full_template(tmp_path / "models", environment)
    found = lint(json.dumps(template), regions=["eu-west-1"], config=ManualArgs(ignore_checks=["W3005"]))
    assert [str(each) for each in found] == []
