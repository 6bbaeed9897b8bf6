"""The function that checks which configuration an endpoint runs."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from constructs_triton_functions import response
from constructs_triton_functions.update_check import CHECK_TYPE, handler

OLD, NEW = "digits-1", "digits-2"


class SageMaker:
    """Describes the endpoint in one state after the other, and then always in the last one."""

    def __init__(self, *states: dict[str, Any] | ClientError) -> None:
        self.states = list(states)
        self.reads = 0

    def describe_endpoint(self, **request: str) -> dict[str, Any]:
        assert request == {"EndpointName": "digits"}
        self.reads += 1
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, ClientError):
            raise state
        return state


class Clock:
    """A clock that only sleeping moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock.monotonic)
    monkeypatch.setattr("time.sleep", clock.sleep)
    return clock


def state(config: str, status: str = "InService", **more: str) -> dict[str, Any]:
    return {"EndpointName": "digits", "EndpointConfigName": config, "EndpointStatus": status, **more}


def ask(monkeypatch: pytest.MonkeyPatch, service: SageMaker, **changes: Any) -> tuple[str, str, str]:
    """Status, physical id and reason of the response to one request."""
    found: list[tuple[str, response.Response, str]] = []
    monkeypatch.setattr(handler, "make_client", lambda _: service)
    monkeypatch.setattr(
        response, "_send", lambda _, status, sent, reason="": found.append((status, sent, reason))
    )
    event = {
        "RequestType": "Create",
        "ResourceType": CHECK_TYPE,
        "LogicalResourceId": "Check",
        "StackId": "stack",
        "RequestId": "request",
        "ResponseURL": "http://localhost",
        "ResourceProperties": {"EndpointName": "digits", "EndpointConfigName": NEW},
        **changes,
    }
    handler.handler(event, None)
    ((status, answer, reason),) = found
    return status, answer.physical_id, reason


UPDATE = {"RequestType": "Update", "PhysicalResourceId": "Check"}


def test_new_configuration_is_accepted(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Create and update succeed at the first read, with a physical id that never changes."""
    for request in ({}, UPDATE, UPDATE):
        service = SageMaker(state(NEW))
        assert ask(monkeypatch, service, **request) == ("SUCCESS", "Check", "")
        assert service.reads == 1


def test_old_configuration_fails_the_deployment(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """The reason names both configurations, SageMaker's reason and what to look at."""
    service = SageMaker(state(OLD, FailureReason="The container did not answer /ping"))
    status, physical_id, reason = ask(monkeypatch, service, **UPDATE)
    assert (status, physical_id) == ("FAILED", "Check")
    assert f"configuration {NEW}, got {OLD} (InService)" in reason
    assert "SageMaker's reason: The container did not answer /ping." in reason
    assert "/aws/sagemaker/Endpoints/digits" in reason
    assert service.reads == 3


def test_rollback_is_accepted(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """An update with the old properties succeeds when the endpoint is back on the old configuration."""
    rolled_back = {**UPDATE, "ResourceProperties": {"EndpointName": "digits", "EndpointConfigName": OLD}}
    service = SageMaker(state(NEW, "RollingBack"), state(OLD, "Updating"), state(OLD))
    assert ask(monkeypatch, service, **rolled_back)[0] == "SUCCESS"
    assert service.reads == 3


def test_failed_endpoint_fails_the_deployment(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """An endpoint that has the right configuration but is not in service is not accepted."""
    status, _, reason = ask(monkeypatch, SageMaker(state(NEW, "Failed")), **UPDATE)
    assert status == "FAILED"
    assert f"got {NEW} (Failed)" in reason


def test_endpoint_that_keeps_changing_fails_before_the_timeout(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """The response is sent before Lambda ends the function after 14 minutes."""
    status, _, reason = ask(monkeypatch, SageMaker(state(NEW, "Updating")), **UPDATE)
    assert status == "FAILED"
    assert "(Updating)" in reason
    assert clock.now < 14 * 60 - 40


def test_new_policy_may_take_effect_later(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """A denied read is repeated; any other error fails the deployment at once."""
    denied, wrong = (
        ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeEndpoint")
        for code in ("AccessDeniedException", "ValidationException")
    )
    assert ask(monkeypatch, SageMaker(denied, denied, state(NEW)))[0] == "SUCCESS"
    assert ask(monkeypatch, SageMaker(wrong, state(NEW)))[0] == "FAILED"


@pytest.mark.parametrize("physical_id", ["Check", "Check-failed"])
def test_delete_asks_nothing(monkeypatch: pytest.MonkeyPatch, physical_id: str) -> None:
    """Deleting succeeds also when the create has failed, and when the endpoint does not exist any more."""
    service = SageMaker()
    request = {"RequestType": "Delete", "PhysicalResourceId": physical_id}
    assert ask(monkeypatch, service, **request) == ("SUCCESS", physical_id, "")
    assert service.reads == 0
