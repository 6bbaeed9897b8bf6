"""The scaling guard, with its role's permissions,
on an AWS that refuses the same requests as SageMaker.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from guard_app import synthesize_states
from guard_states import LARGE, SMALL, STACK
from stack_view import Deploy, StackView, deploy, fresh

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.failures import fail_each_change
from cdk_rehearse.steps import Step
from constructs_triton_functions.scaling_guard import POLICY_TYPE, TARGET_TYPE

BUDGET_MINUTES = 2

_PASSING = (
    "CreationTime",
    "ScalableTargetARN",
    "PolicyARN",
    "ScheduledActionARN",
    "Alarms",
    "RoleARN",
)
__all__ = ["STACK", "deploy", "fresh"]  # fixtures, and what they read
FIRST = "small"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scaling guard's stack in each of its states."""
    return synthesize_states(tmp_path_factory.mktemp("guard"))


def scaling(view: StackView) -> dict[str, list[dict[str, Any]]]:
    """The endpoint's targets, policies and schedules,
    without values that a new registration changes.
    """
    client = view.aws.client("application-autoscaling")
    resource = f"endpoint/{view.output('Name')}/variant/"
    described = {
        "targets": client.describe_scalable_targets(ServiceNamespace="sagemaker")[
            "ScalableTargets"
        ],
        "policies": client.describe_scaling_policies(ServiceNamespace="sagemaker")[
            "ScalingPolicies"
        ],
        "actions": client.describe_scheduled_actions(ServiceNamespace="sagemaker")[
            "ScheduledActions"
        ],
    }
    return {
        kind: sorted(
            (
                {name: value for name, value in each.items() if name not in _PASSING}
                for each in listed
                if each["ResourceId"].startswith(resource)
            ),
            key=str,
        )
        for kind, listed in described.items()
    }


def of_variant(view: StackView, kind: str, variant: str) -> list[dict[str, Any]]:
    return [each for each in scaling(view)[kind] if each["ResourceId"].endswith(f"/{variant}")]


def gpu_target(view: StackView, variant: str) -> float:
    """The target of the policy on GPU utilization, which depends on the instance type's GPUs."""
    (value,) = [
        each["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
        for each in of_variant(view, "policies", variant)
        if "Gpu" in each["PolicyName"]
    ]
    return float(value)


def instance_types(view: StackView) -> dict[str, str]:
    variants = view.endpoint_config("Name")["ProductionVariants"]
    return {each["VariantName"]: each["InstanceType"] for each in variants}


def test_lost_response_of_a_creation_leaves_no_scaling(
    aws: SimulatedAccount, deploy: Deploy
) -> None:
    """Target and policy have ids that their function does not know,
    and their rollback deletes them.
    """
    names = (f"Lost{next(NUMBERS)}" for _ in NUMBERS)
    resources = deploy("small", "Lost").resources
    steps = [
        Step("create", next(name for name, each in resources.items() if each.request.type == kind))
        for kind in (TARGET_TYPE, POLICY_TYPE)
    ]
    aws.destroy("Lost")
    attempts = list(fail_each_change(aws, lambda: deploy("small", next(names)), steps))
    for each in attempts:
        failed = [event.reason for event in each.leftovers if event.status == "DELETE_FAILED"]
        assert (each.statuses, failed) == (("ROLLBACK_COMPLETE", "DELETE_COMPLETE"), []), each
    found = aws.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker"
    )
    ours = [
        each["ResourceId"] for each in found["ScalableTargets"] if "/Lost" in each["ResourceId"]
    ]
    assert ours == []


def test_scaling_is_registered_as_declared(fresh: StackView) -> None:
    """The guard registers the bounds, suspension, policies and schedule of each variant."""
    (blue,), (green,) = (of_variant(fresh, "targets", name) for name in ("blue", "green"))
    assert (blue["MinCapacity"], blue["MaxCapacity"]) == (1, 4)
    suspended = [name for name, value in blue["SuspendedState"].items() if value]
    assert suspended == ["DynamicScalingInSuspended"]
    assert not any(green["SuspendedState"].values())
    for name in ("blue", "green"):
        assert gpu_target(fresh, name) == 60
        assert len(of_variant(fresh, "policies", name)) == 2
        (action,) = of_variant(fresh, "actions", name)
        assert action["ScheduledActionName"] == "night"
        assert action["ScalableTargetAction"] == {"MinCapacity": 1, "MaxCapacity": 2}


def test_changed_instance_type_is_deployed(fresh: StackView, deploy: Deploy) -> None:
    """The changed variant gets its instances and new scaling; the other variant is not changed."""
    before = scaling(fresh)
    deregistered = len(calls(fresh, "deregistered"))
    stack = deploy("large", fresh.name)
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    assert instance_types(fresh) == {"blue": LARGE, "green": SMALL}
    after = scaling(fresh)
    assert after["targets"] == before["targets"]
    assert after["actions"] == before["actions"]
    assert gpu_target(fresh, "blue") == 60 * 4
    assert gpu_target(fresh, "green") == 60
    assert {each["PolicyName"] for each in after["policies"]} == {
        each["PolicyName"] for each in before["policies"]
    }
    named = calls(fresh, "deregistered")[deregistered:]
    assert [line.rpartition("/")[2] for line in named] == ["blue"]


def test_change_without_the_guard_is_refused(aws: SimulatedAccount, deploy: Deploy) -> None:
    """Without the guard, SageMaker refuses the same change."""
    assert deploy("unguarded", "Unguarded").status == "CREATE_COMPLETE"
    stack = deploy("unguarded_large", "Unguarded")
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "must be deregistered as scalable targets" in stack.reason


def test_scaled_variant_is_removed(fresh: StackView, deploy: Deploy) -> None:
    """One deployment removes a scaled variant with its scaling; the other variant keeps scaling."""
    blue = [of_variant(fresh, kind, "blue") for kind in ("targets", "policies", "actions")]
    stack = deploy("blue_only", fresh.name)
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    assert instance_types(fresh) == {"blue": SMALL}
    assert not of_variant(fresh, "targets", "green")
    assert [of_variant(fresh, kind, "blue") for kind in ("targets", "policies", "actions")] == blue
    assert deploy("small", fresh.name).status == "UPDATE_COMPLETE"
    assert of_variant(fresh, "targets", "green")


@pytest.mark.parametrize("state", ["fails_before", "fails_between", "fails_after", "removal_fails"])
def test_failed_update_does_not_change_scaling(
    fresh: StackView, deploy: Deploy, state: str
) -> None:
    """After a failed deployment, instances and scaling are unchanged,
    and the next deployment succeeds.
    """
    before = scaling(fresh)
    stack = deploy(state, fresh.name)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE", stack.reason
    assert "Broken" in stack.reason
    assert set(instance_types(fresh).values()) == {SMALL}
    assert scaling(fresh) == before
    assert not [event for event in stack.events if event.status == "DELETE_FAILED"]
    assert deploy("large", fresh.name).status == "UPDATE_COMPLETE"
    assert gpu_target(fresh, "blue") == 60 * 4


def test_guard_on_existing_scaling_is_refused(deploy: Deploy, aws: SimulatedAccount) -> None:
    """Adding the guard to scaling that CloudFormation registered is refused:
    it would be deregistered.
    """
    assert deploy("unguarded", "Adopting").status == "CREATE_COMPLETE"
    before = scaling(StackView(aws, "Adopting"))
    stack = deploy("small", "Adopting")
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "deploy once without the scaling of this variant" in stack.reason
    assert scaling(StackView(aws, "Adopting")) == before


def test_removed_guard_keeps_scaling(fresh: StackView, deploy: Deploy) -> None:
    """When the guard is removed, CloudFormation registers the target, which stays registered."""
    before = scaling(fresh)
    stack = deploy("unguarded", fresh.name)
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    after = scaling(fresh)
    assert [each["ResourceId"] for each in after["targets"]] == [
        each["ResourceId"] for each in before["targets"]
    ]
    assert len(after["policies"]) == len(before["policies"])


def test_destroy_deletes_everything(fresh: StackView, deploy: Deploy) -> None:
    """After a change and a rollback, deleting the stack removes targets,
    policies and the saved state.
    """
    deploy("large", fresh.name)
    deploy("removal_fails", fresh.name)
    noted = fresh.stack.id
    stack = fresh.aws.destroy(fresh.name)
    assert stack.status == "DELETE_COMPLETE", stack.reason
    assert fresh.leftovers() == {"log-group"}
    listed = fresh.aws.client("ssm").describe_parameters()["Parameters"]
    assert not [each for each in listed if noted.rpartition("/")[2] in each["Name"]]


def calls(view: StackView, word: str) -> list[str]:
    """Lines of the function's log."""
    logs = view.aws.client("logs")
    groups = logs.describe_log_groups(logGroupNamePrefix=f"{view.name}-")
    names = [each["logGroupName"] for each in groups["logGroups"]]
    (group,) = [name for name in names if "ScalingGuardFunction" in name]
    events = logs.filter_log_events(logGroupName=group)["events"]
    return [event["message"] for event in events if word in event["message"]]
