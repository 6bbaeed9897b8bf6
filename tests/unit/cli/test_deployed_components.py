"""``status``, ``diagnose`` and ``logs`` of an endpoint with inference components,
on a fake account.
"""

from __future__ import annotations

import io
from typing import Any

import pytest
from test_deployed_commands import Account, account

from constructs_triton.cli import main
from constructs_triton_tools.cli.deployed import status
from constructs_triton_tools.operations.served_archives import ServedArchives

__all__ = ["account"]  # a fixture

GROUP = "/aws/sagemaker/InferenceComponents/first"
NO_ROOM = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of "
    "the inference component."
)
TARGET = {"ResourceId": "inference-component/first", "MinCapacity": 0, "MaxCapacity": 4}
OTHER = {**TARGET, "ResourceId": "inference-component/of-another-endpoint"}
ALARM = {"AlarmName": "wake", "Dimensions": [{"Name": "InferenceComponentName", "Value": "first"}]}


def component(status: str, current: int, **more: Any) -> dict[str, Any]:
    return {
        "InferenceComponentName": "first",
        "InferenceComponentStatus": status,
        "RuntimeConfig": {"CurrentCopyCount": current, "DesiredCopyCount": 1},
        "Specification": {"ModelName": "digits-1"},
        **more,
    }


def test_status_shows_copies_scaling_and_alarms(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those of components, and of no other endpoint."""
    account["sagemaker.describe_inference_component"] = component("Updating", 0)
    account["application-autoscaling.describe_scalable_targets"] = {
        "ScalableTargets": [TARGET, OTHER]
    }
    account["cloudwatch.describe_alarms"] = {"MetricAlarms": [ALARM]}
    assert main(["status", "digits"]) == 0
    out = capsys.readouterr().out
    assert "  inference component first: Updating, 0 of 1 copies\n    model digits-1\n" in out
    assert "  scaling of first: 0 to 4 copies\n" in out
    assert "alarm: wake" in out
    assert "another-endpoint" not in out


@pytest.mark.parametrize(("status", "code"), [("InService", 0), ("Creating", 1), ("Failed", 1)])
def test_status_fails_if_a_component_does_not_serve(
    account: Account, capsys: pytest.CaptureFixture[str], status: str, code: int
) -> None:
    """With SageMaker's reason."""
    account["sagemaker.describe_inference_component"] = component(
        status, 0, FailureReason="because"
    )
    assert main(["status", "digits"]) == code
    assert "    reason: because\n" in capsys.readouterr().out


def test_failed_component_is_diagnosed(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """From SageMaker's reason and from the log of the component."""
    groups: list[str] = []

    def describe_log_streams(**request: Any) -> dict[str, Any]:
        groups.append(request["logGroupName"])
        return {"logStreams": []}

    account["logs.describe_log_streams"] = describe_log_streams
    account["sagemaker.describe_inference_component"] = component(
        "Failed", 0, FailureReason=NO_ROOM
    )
    assert main(["diagnose", "digits"]) == 1
    out = capsys.readouterr().out
    assert f"SageMaker's reason for inference component first: {NO_ROOM}" in out
    assert f"there is no log in {GROUP}" in out
    assert "lower min_memory first" in out
    assert groups == [GROUP]


def test_sleeping_component_is_no_failure(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """The diagnosis says that it has no copies."""
    account["sagemaker.describe_inference_component"] = component("InService", 0)
    assert main(["diagnose", "digits"]) == 0
    assert (
        "inference component first has zero copies; a call wakes it if it scales"
        in capsys.readouterr().out
    )


def test_logs_of_a_component(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    """They are in its own log group."""
    event = {"eventId": "1", "timestamp": 0, "logStreamName": "s", "message": "a line"}

    def filter_log_events(**request: Any) -> dict[str, Any]:
        return {"events": [event] if request["logGroupName"] == GROUP else []}

    account["logs.filter_log_events"] = filter_log_events
    assert main(["logs", "digits", "--inference-component", "first"]) == 0
    assert capsys.readouterr().out.endswith("s a line\n")


def test_status_counts_the_models_of_a_large_endpoint() -> None:
    """Ten models are listed with their archives; of a thousand, the number, a few,
    and what lists all.
    """
    models = {f"tenant{number:03}": f"tenant{number:03}.tar.gz" for number in range(1000)}
    few = status._archive_lines(ServedArchives("s3://b/m/", True, dict(list(models.items())[:10])))
    assert list(few)[1:3] == [
        "      tenant000  tenant000.tar.gz",
        "      tenant001  tenant001.tar.gz",
    ]
    assert list(status._archive_lines(ServedArchives("s3://b/m/", True, models)))[1:] == [
        '      1,000 models: "tenant000", "tenant001", "tenant002" and 997 more '
        "(all: `constructs-triton models list --bucket b --prefix m/`)"
    ]


def test_status_shows_a_model_of_the_stack_that_was_removed(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that a stack has deployed, and that the index does not have, is a line of its own."""
    text = b'{"version": 1, "target_models": {"b": "b.tar.gz"}, "deployed": {"a": "S", "b": "S"}}'
    account["s3.get_object"] = {"Body": io.BytesIO(text)}
    assert main(["status", "digits"]) == 0
    assert (
        '      b  b.tar.gz\n      deployed, but not in the index: "a"\n' in capsys.readouterr().out
    )
