"""Rehearsals report scaling that cannot act, and variants that get no requests."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import Resources
from small_assembly import endpoint, rehearsal

from constructs_triton_core.findings import Severity

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

SCALING, WEIGHTS = "rehearse-scaling-cannot-act", "rehearse-all-weights-zero"
GPU = {"MetricName": "GPUUtilization", "Namespace": "/aws/sagemaker/Endpoints"}
BACKLOG = {"MetricName": "ApproximateBacklogSizePerInstance", "Namespace": "AWS/SageMaker"}
OWN = {"MetricName": "GPUUtilization", "Namespace": "Shop"}
STOP = {"MinCapacity": 0, "MaxCapacity": 0}


def tracking(metric: dict[str, Any]) -> dict[str, Any]:
    """A target tracking policy on a metric, which may be predefined."""
    kind = "Customized" if "MetricName" in metric else "Predefined"
    customized = {**metric, "Statistic": "Average"} if kind == "Customized" else metric
    config = {"TargetValue": 5, f"{kind}MetricSpecification": customized}
    return {
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": config,
    }


def stepping() -> dict[str, Any]:
    config = {
        "AdjustmentType": "ChangeInCapacity",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
    }
    return {"PolicyType": "StepScaling", "StepScalingPolicyConfiguration": config}


def scaled(
    *policies: dict[str, Any],
    bounds: tuple[int | str, int | str] = (0, 3),
    schedules: tuple[dict[str, int], ...] = (),
    by_id: bool = True,
) -> Resources:
    """An endpoint whose target has these policies, named by its ID or by its resource."""
    resources = endpoint(scaled_to=3)
    target = resources["Target"]["Properties"]
    target["MinCapacity"], target["MaxCapacity"] = bounds
    target["ScheduledActions"] = [
        {
            "ScheduledActionName": f"At{number}",
            "Schedule": f"cron(0 {number} * * ? *)",
            "ScalableTargetAction": action,
        }
        for number, action in enumerate(schedules)
    ]
    names = ("ResourceId", "ScalableDimension", "ServiceNamespace")
    named = {name: target[name] for name in names}
    for number, policy in enumerate(policies):
        place = {"ScalingTargetId": {"Ref": "Target"}} if by_id else named
        resources[f"Policy{number}"] = {
            "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
            "Properties": {"PolicyName": f"p{number}", **place, **policy},
            "DependsOn": ["Target"],
        }
    return resources


def problems(folder: Path, old: Resources | None, new: Resources) -> list[tuple[str, str]]:
    """The path and the text of each problem of scaling or weights, which are warnings."""
    found = []
    for problem in rehearsal(folder, old, new).problems:
        if problem.code in (SCALING, WEIGHTS):
            assert problem.severity is Severity.WARNING
            found.append((problem.path, problem.message))
    return found


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (scaled(bounds=(1, 3)), "no policy and no schedule"),
        (scaled(bounds=(2, 2)), ""),
        (scaled(stepping(), bounds=(1, 3)), ""),
        (scaled(stepping(), bounds=(1, 3), by_id=False), ""),
        (scaled(bounds=(1, 3), schedules=({"MinCapacity": 2},)), ""),
        (scaled(tracking(GPU)), "with 0 instances"),
        (
            scaled(tracking({"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"})),
            "0 ",
        ),
        (scaled(tracking(GPU), stepping()), ""),
        (scaled(tracking(BACKLOG)), ""),
        (scaled(tracking(OWN)), ""),
        (scaled(tracking(GPU), bounds=(1, 3)), ""),
        (scaled(tracking(GPU), bounds=(1, 3), schedules=(STOP,)), "maximum to 0 instances"),
        (scaled(tracking(GPU), bounds=(1, 3), schedules=({"MinCapacity": 0},)), "with 0 instances"),
        (scaled(tracking(GPU), schedules=(STOP, {"MinCapacity": 1, "MaxCapacity": 3})), ""),
    ],
)
def test_first_deployment_of_scaling(tmp_path: Path, resources: Resources, expected: str) -> None:
    """Bounds without a policy, and zero without a way back, are warnings; nothing else is one."""
    found = problems(tmp_path, None, resources)
    assert [path for path, _ in found] == (["Target"] if expected else [])
    assert all(expected in message for _, message in found)


@pytest.mark.parametrize(
    ("metric", "is_unknown"),
    [(OWN, True), ({**BACKLOG, "MetricName": "Other"}, True), (BACKLOG, False)],
)
def test_policy_on_another_metric_is_named_as_not_known(
    tmp_path: Path, metric: dict[str, Any], is_unknown: bool
) -> None:
    """The report names a policy from 0 whose metric may or may not have a value, as not known."""
    found = rehearsal(tmp_path, None, scaled(tracking(metric)))
    line = "whether a policy of Target starts the first one from 0 instances"
    assert (line in found.not_simulated) is is_unknown


def test_update_is_a_warning_only_where_it_causes_it(tmp_path: Path) -> None:
    """A removed policy is reported, and bounds that had no policy before are not."""
    with_policy = scaled(stepping(), bounds=(1, 3))
    without = scaled(bounds=(1, 3))
    assert len(problems(tmp_path, with_policy, without)) == 1
    assert problems(tmp_path, without, scaled(bounds=(1, 4))) == []


def weighted(*weights: float, name: str = "first", retains: bool = False) -> Resources:
    """An endpoint with one variant for each weight."""
    resources = endpoint()
    config = resources["Config"]["Properties"]
    (variant,) = config["ProductionVariants"]
    config["ProductionVariants"] = [
        {**copy.deepcopy(variant), "VariantName": f"v{number}", "InitialVariantWeight": weight}
        for number, weight in enumerate(weights)
    ]
    config["EndpointConfigName"] = name
    if retains:
        resources["Endpoint"]["Properties"]["RetainAllVariantProperties"] = True
    return resources


def test_weights_of_an_endpoint(tmp_path: Path) -> None:
    """Only zeros are a warning, unless an update keeps the weights that the variants have."""
    (found,) = problems(tmp_path, None, weighted(0, 0))
    assert found[0] == "Config"
    assert problems(tmp_path, None, weighted(0, 0.5)) == []
    assert problems(tmp_path, weighted(0, 0), weighted(0, 0)) == []
    assert len(problems(tmp_path, weighted(1, 1), weighted(0, 0, name="second"))) == 1
    kept = weighted(0, 0, name="second", retains=True)
    assert problems(tmp_path, weighted(1, 1, retains=True), kept) == []
