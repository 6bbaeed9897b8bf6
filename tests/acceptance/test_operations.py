"""status, diagnose and logs on a loopback AWS: endpoints that fail, roll back, scale,
and are in update.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from moto.sagemakerruntime.responses import SageMakerRuntimeResponse
from observed_endpoints import Observed
from operate_app import NAME, STACK, synthesize

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.behaviour import CALM
from constructs_triton.cli import main

BUDGET_MINUTES = 2

GROUP = f"/aws/sagemaker/Endpoints/{NAME}"
RESOURCE = f"endpoint/{NAME}/variant/AllTraffic"
PING = (
    "The primary container for production variant AllTraffic did not pass the ping health check. "
    "Please check CloudWatch logs for this endpoint."
)
MISSING = (
    "E1121 17:53:13.485099 2621 model_lifecycle.cc:642] \"failed to load '/opt/ml/model::alpha' "
    "version 1: Internal: ModuleNotFoundError: No module named 'torch'\""
)
HARMLESS = 'E1121 17:53:12.1 1 server.cc:241] "CudaDriverHelper has not been initialized."'


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "operating.md"


def is_in_guide(command: str, output: str) -> bool:
    """Return whether the guide shows this output, with ``[...]`` for parts and lines of its own."""
    shown = re.findall(
        r"```text\n\$ constructs-triton ([^\n]+)\n(.*?)```", GUIDE.read_text(), re.DOTALL
    )
    return any(
        each == command and _has_parts(" ".join(output.split()), text) for each, text in shown
    )


def _has_parts(output: str, shown: str) -> bool:
    parts = [re.escape(" ".join(part.split())) for part in shown.split("[...]")]
    return re.search(".*".join(parts), output) is not None


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("assemblies"))


@pytest.fixture(scope="module")
def aws(assemblies: Path) -> Iterator[SimulatedAccount]:
    """An account in which the endpoint is deployed."""
    with SimulatedAccount() as account:
        account.bootstrap()
        stack = account.deploy(assemblies / "first", STACK)
        assert stack.status == "CREATE_COMPLETE", stack.reason
        yield account


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    aws: SimulatedAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs a command with the credentials of the role that may operate the endpoint."""
    arn = aws.stack(STACK).output_values["OperatorArn"]
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    for name, value in (
        aws.access.assume(arn, service="lambda.amazonaws.com", context={}).as_environment().items()
    ):
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> tuple[int, str]:
        code = main(arguments)
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def observed(aws: SimulatedAccount) -> Iterator[Observed]:
    """What the account has observed, until the test ends."""
    with Observed().answered() as found:
        yield found


@pytest.fixture
def observe(observed: Observed) -> Callable[..., None]:
    """Sets what DescribeEndpoint answers, until the test ends."""

    def observe(**members: Any) -> None:
        observed.endpoints[NAME] = members

    return observe


def write_log(aws: SimulatedAccount, stream: str, *lines: str) -> None:
    logs, now = aws.client("logs"), int(time.time() * 1000)
    logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
    events = [{"timestamp": now + number, "message": line} for number, line in enumerate(lines)]
    logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)


def test_a_healthy_endpoint_has_a_state_and_no_diagnosis(run: Run) -> None:
    """The state names instances, image, models and scaling; nothing was denied;
    diagnose exits with 0.
    """
    code, text = run("status", NAME)
    assert code == 0
    for words in (
        f"{NAME}: InService",
        "variant AllTraffic: 1 of 1 instances of ml.c6i.large",
        "Triton 26.05",
        "      alpha  alpha-",
        "scaling of AllTraffic: 1 to 4 instances",
        "policy: ",
    ):
        assert words in text
    assert "not read" not in text
    code, text = run("diagnose", NAME)
    sources = "its status, stack, scaling and alarms, and the end of its logs"
    assert (code, text) == (0, f"{NAME}: InService\nno known failure found in {sources}\n")


def test_the_endpoints_of_a_stack_are_found(run: Run) -> None:
    """--stack reads every endpoint of the stack, also as JSON."""
    code, text = run("status", "--stack", STACK, "--json")
    (state,) = json.loads(text)["endpoints"]
    assert (code, state["name"], state["not_read"]) == (0, NAME, [])
    assert set(state["variants"][0]["archives"]["models"]) == {"alpha", "beta"}


def test_a_failed_endpoint_is_diagnosed_from_its_log(
    aws: SimulatedAccount, run: Run, observe: Callable[..., None]
) -> None:
    """FailureReason only says that the health check failed;
    the log of the new instance has the cause.
    """
    observe(EndpointStatus="Failed", FailureReason=PING)
    write_log(
        aws,
        "AllTraffic/i-0a1b2c3d4e5f60718",
        HARMLESS,
        MISSING,
        "error: creating server: Internal - failed to load all models",
    )
    code, text = run("status", NAME)
    assert code == 1
    assert f"{NAME}: Failed\n  reason: {PING}" in text
    code, text = run("diagnose", NAME)
    assert code == 1
    lines = text.splitlines()
    assert lines[0] == f"{NAME}: Failed"
    assert "likely cause: the Python package torch is not installed" in lines[2]
    assert lines[3].startswith("  fix: for a Python model of Triton run `constructs-triton env")
    assert re.search(
        r"(?m)^  from log stream AllTraffic/i-0a1b2c3d4e5f60718, \S+ \S+ UTC: E1121", text
    )
    assert "[ping-health-check]" in text
    assert "not read" not in text
    assert is_in_guide(f"diagnose {NAME}", text)
    code, text = run("diagnose", "--stack", STACK, "--json")
    (result,) = json.loads(text)["endpoints"]
    assert [each["id"] for each in result["diagnoses"]] == [
        "py-module-missing",
        "ping-health-check",
        "models-failed",
    ]
    code, text = run("logs", NAME, "--errors", "--variant", "AllTraffic")
    assert code == 0
    assert MISSING in text
    assert HARMLESS not in text
    assert HARMLESS in run("logs", NAME)[1]
    aws.client("logs").delete_log_stream(
        logGroupName=GROUP, logStreamName="AllTraffic/i-0a1b2c3d4e5f60718"
    )


def test_an_endpoint_that_scales_shows_its_activities(
    run: Run, observed: Observed, observe: Callable[..., None]
) -> None:
    """The last activities are shown; a failed one is diagnosed."""
    activity = {
        "ActivityId": "1",
        "ServiceNamespace": "sagemaker",
        "ResourceId": RESOURCE,
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "Description": "Setting desired instance count to 4.",
        "Cause": "monitor alarm TargetTracking-endpoint/digits was triggered",
        "StartTime": datetime(2026, 11, 21, 17, 53, tzinfo=UTC),
        "StatusCode": "Successful",
        "StatusMessage": "Successfully set desired instance count to 4.",
    }
    variant = {"VariantName": "AllTraffic", "CurrentInstanceCount": 2, "DesiredInstanceCount": 4}
    observe(ProductionVariants=[variant])
    observed.activities[RESOURCE] = [activity]
    _, text = run("status", NAME)
    assert "variant AllTraffic: 2 of 4 instances" in text
    assert (
        "activity: 2026-11-21 17:53:00 UTC Successful: Setting desired instance count to 4." in text
    )
    assert run("diagnose", NAME)[0] == 0
    reason = (
        "Failed to set desired instance count to 4. Reason: Unable to provision requested ML "
        "compute capacity due to InsufficientInstanceCapacity error."
    )
    observed.activities[RESOURCE] = [{**activity, "StatusCode": "Failed", "StatusMessage": reason}]
    code, text = run("diagnose", NAME)
    assert code == 1
    assert "[insufficient-capacity]" in text
    assert "from scaling activity of AllTraffic" in text


def test_an_endpoint_in_update_shows_both_fleets(run: Run, observe: Callable[..., None]) -> None:
    """The new instances are counted beside the old ones; an update is no failure."""
    pending = {
        "EndpointConfigName": "DigitsEndpointConfig-Qm3vT8",
        "ProductionVariants": [
            {"VariantName": "AllTraffic", "CurrentInstanceCount": 1, "DesiredInstanceCount": 2}
        ],
    }
    observe(EndpointStatus="Updating", PendingDeploymentSummary=pending)
    code, text = run("status", NAME)
    assert code == 1
    assert "update: AllTraffic: 1 of 2 new instances, DigitsEndpointConfig-Qm3vT8" in text
    assert is_in_guide(f"status {NAME}", text)
    assert run("diagnose", NAME)[0] == 0


def test_models_are_loaded_by_calls(run: Run, observe: Callable[..., None]) -> None:
    """Each model of the index is called so often that the calls reach most
    of the three instances.
    """
    calls: list[str] = []

    def invoke_endpoint(response: Any) -> Any:
        calls.append(response.headers["X-Amzn-SageMaker-Target-Model"])
        return 200, {"Content-Type": "application/json"}, "{}"

    variant = {"VariantName": "AllTraffic", "CurrentInstanceCount": 3, "DesiredInstanceCount": 3}
    observe(ProductionVariants=[variant])
    with mock.patch.object(SageMakerRuntimeResponse, "invoke_endpoint", invoke_endpoint):
        code, text = run("models", "warm", NAME, "--all")
    assert code == 0
    assert sorted({each.partition("-")[0] for each in calls}) == ["alpha", "beta"]
    assert len(calls) == 16
    assert "8 calls of each model reach 2.9 of 3 instances on average" in text


def test_an_update_that_rolls_back_is_diagnosed(
    aws: SimulatedAccount, assemblies: Path, run: Run
) -> None:
    """The endpoint serves again with its old configuration;
    the stack's first failed event says why.
    """
    aws.behaviour = replace(CALM, endpoint_update="fails")
    aws.deploy(assemblies / "second", STACK)
    aws.behaviour = CALM
    assert aws.stack(STACK).status == "UPDATE_ROLLBACK_COMPLETE"
    code, text = run("diagnose", NAME)
    assert code == 1
    assert "first failed event of the stack: Digits" in text
    assert "[silent-rollback]" in text
    assert run("status", NAME)[0] == 0
