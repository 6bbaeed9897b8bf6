"""The advice for an update that SageMaker refuses, followed in rehearsals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_apps import ENVIRONMENT, add_endpoint

from constructs_triton import AsyncInferenceConfig, InstanceType
from constructs_triton.testing import rehearse
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.failures import fix_of
from constructs_triton_tools.operations import diagnose_log

REFUSED = (
    "The variant(s) \"['AllTraffic']\" must be deregistered as scalable targets with AWS Auto "
    "Scaling before they can be removed or have their instance type updated."
)


def version(
    path: Path, size: str, *, is_scaled: bool = True, is_async: bool = True, has_guard: bool = False
) -> cdk.Stack:
    """An endpoint of this size, which scales to zero if it is asynchronous."""
    stack = cdk.Stack(cdk.App(), "Batch", env=ENVIRONMENT)
    queue = AsyncInferenceConfig(bucket=s3.Bucket(stack, "Queue")) if is_async else None
    machine = InstanceType.of(f"ml.c6i.{size}")
    options: dict[str, Any] = {"async_inference": queue, "scaling_guard": has_guard}
    endpoint = add_endpoint(
        stack, path, model="other", endpoint_name="batch", instance_type=machine, **options
    )
    if not is_scaled:
        endpoint.retain_instance_counts()
    elif is_async:
        scaling = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=3)
        scaling.scale_on_backlog("Backlog", target_backlog_per_instance=4)
    else:
        scaling = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
        scaling.scale_on_cpu_utilization("Cpu")
    return stack


def errors(old: cdk.Stack, new: cdk.Stack) -> list[str]:
    """The problems of an update without failures, each with its hint."""
    found = rehearse(old, new, failures="none", orders=1)
    return [f"{each.code}: {each.hint}" for each in found.problems if each.severity == "error"]


def test_rehearsal_and_diagnosis_give_the_same_advice(path: Path) -> None:
    """Both name the two deployments, and the guard only for scaling that it supports."""
    advice = fix_of("scaled-variant-update")
    assert errors(version(path, "large"), version(path, "xlarge")) == [
        f"rehearse-update-fails: {advice}"
    ]
    assert [each.fix for each in diagnose_log(REFUSED, is_log=False)] == [advice]
    with pytest.raises(InvalidValueError, match="min_capacity=0 needs too"):
        version(path, "large", has_guard=True)


@pytest.mark.parametrize("is_async", [True, False])
def test_two_deployments_change_the_instance_type(path: Path, is_async: bool) -> None:
    """Without the scaling first, then the new version; with the guard,
    later changes need one deployment.
    """
    old, between = (
        version(path, "large", is_async=is_async),
        version(path, "large", is_scaled=False, is_async=is_async),
    )
    new = version(path, "xlarge", is_async=is_async, has_guard=not is_async)
    assert errors(old, between) == []
    assert errors(between, new) == []
    if not is_async:
        assert errors(new, version(path, "2xlarge", is_async=False, has_guard=True)) == []
