"""``constructs-triton stop --force`` and ``start`` on an endpoint of a stack, on a loopback AWS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pools_app import STACK, synthesize_states
from stack_view import StackView

from cdk_rehearse import SimulatedAccount
from constructs_triton.cli import main
from constructs_triton_tools.operations.stopping import aws_calls

BUDGET_MINUTES = 1


def scaling(view: StackView, name: str) -> list[Any]:
    """The bounds and the policies of the endpoint, without ARNs and times."""
    client = view.aws.client("application-autoscaling")
    resource = f"endpoint/{name}/variant/AllTraffic"
    targets = client.describe_scalable_targets(ServiceNamespace="sagemaker", ResourceIds=[resource])
    policies = client.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=resource)
    return [
        *((each["MinCapacity"], each["MaxCapacity"]) for each in targets["ScalableTargets"]),
        *(each["TargetTrackingScalingPolicyConfiguration"] for each in policies["ScalingPolicies"]),
    ]


def test_night_of_a_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An update at night fails, and its rollback too; after the start, both succeed and nothing is lost."""
    assemblies = synthesize_states(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(aws_calls, "_POLL_SECONDS", 0.1)
    with SimulatedAccount() as aws:
        aws.bootstrap()
        assert aws.deploy(assemblies / "first", STACK).status == "CREATE_COMPLETE"
        for key, value in aws.variables().items():
            monkeypatch.setenv(key, value)
        view = StackView(aws, STACK)
        name = view.output("Name")
        before = scaling(view, name)
        assert len(before) == 2
        assert main(["stop", name, "--yes"]) == 2
        assert f"belongs to CloudFormation stack {STACK}" in capsys.readouterr().err
        assert main(["stop", name, "--yes", "--force"]) == 0
        assert scaling(view, name) == []
        assert aws.deploy(assemblies / "reordered", STACK).status == "UPDATE_ROLLBACK_FAILED"

        assert main(["start", name, "--yes"]) == 0
        assert scaling(view, name) == before
        cloudformation = aws.client("cloudformation")
        cloudformation.continue_update_rollback(StackName=STACK)
        waiter = cloudformation.get_waiter("stack_rollback_complete")
        waiter.wait(StackName=STACK, WaiterConfig={"Delay": 0.2, "MaxAttempts": 100})
        assert aws.stack(STACK).status == "UPDATE_ROLLBACK_COMPLETE"
        assert scaling(view, name) == before
        stack = aws.deploy(assemblies / "reordered", STACK)
        assert stack.status == "UPDATE_COMPLETE", stack.reason
        assert len(scaling(view, name)) == 2
        assert aws.destroy(STACK).status == "DELETE_COMPLETE"
