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
    return {
        "EndpointName": "digits",
        "EndpointConfigName": config,
        "EndpointStatus": status,
        **more,
    }


def ask(
    monkeypatch: pytest.MonkeyPatch, service: SageMaker, **changes: Any
) -> tuple[str, str, str]:
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


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeEndpoint")


UPDATE = {"RequestType": "Update", "PhysicalResourceId": "Check"}
ROLLBACK = {**UPDATE, "ResourceProperties": {"EndpointName": "digits", "EndpointConfigName": OLD}}
DENIED = refused("AccessDeniedException")
ROLLED_BACK = (state(NEW, "RollingBack"), state(OLD, "Updating"), state(OLD))


@pytest.mark.parametrize(
    ("sent", "states", "reads"),
    [
        pytest.param({}, [state(NEW)], 1, id="create"),
        pytest.param(UPDATE, [state(NEW)], 1, id="update"),
        pytest.param(ROLLBACK, ROLLED_BACK, 3, id="back on the old configuration"),
        pytest.param({}, [DENIED, DENIED, state(NEW)], 3, id="a new policy takes effect later"),
    ],
)
def test_wanted_configuration_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    sent: dict[str, Any],
    states: list[Any],
    reads: int,
) -> None:
    """An endpoint in service with the configuration of the request,
    and a physical id that never changes.
    """
    service = SageMaker(*states)
    assert ask(monkeypatch, service, **sent) == ("SUCCESS", "Check", "")
    assert service.reads == reads


def test_old_configuration_fails_the_deployment(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """The reason names both configurations, SageMaker's reason and what to look at."""
    service = SageMaker(state(OLD, FailureReason="The container did not answer /ping"))
    status, physical_id, reason = ask(monkeypatch, service, **UPDATE)
    assert (status, physical_id, service.reads) == ("FAILED", "Check", 3)
    assert f"configuration {NEW}, got {OLD} (InService)" in reason
    assert "SageMaker's reason: The container did not answer /ping." in reason
    assert "/aws/sagemaker/Endpoints/digits" in reason


@pytest.mark.parametrize(
    ("states", "words"),
    [
        pytest.param([state(NEW, "Failed")], f"got {NEW} (Failed)", id="not in service"),
        pytest.param([state(NEW, "Updating")], "(Updating)", id="keeps changing"),
        pytest.param(
            [refused("ValidationException"), state(NEW)], "ValidationException", id="another error"
        ),
    ],
)
def test_endpoint_that_is_not_in_service_fails_before_the_timeout(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, states: list[Any], words: str
) -> None:
    """The response is sent before Lambda ends the function after 14 minutes."""
    status, _, reason = ask(monkeypatch, SageMaker(*states), **UPDATE)
    assert status == "FAILED"
    assert words in reason
    assert clock.now < 14 * 60 - 40


@pytest.mark.parametrize("physical_id", ["Check", "Check-failed"])
def test_delete_asks_nothing(monkeypatch: pytest.MonkeyPatch, physical_id: str) -> None:
    """Deleting succeeds also when the create has failed,
    and when the endpoint does not exist any more.
    """
    service = SageMaker()
    request = {"RequestType": "Delete", "PhysicalResourceId": physical_id}
    assert ask(monkeypatch, service, **request) == ("SUCCESS", physical_id, "")
    assert service.reads == 0
