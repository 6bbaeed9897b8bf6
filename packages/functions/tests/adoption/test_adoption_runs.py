"""An update that takes longer than one run of the function."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from constructs_triton_functions import continuation
from constructs_triton_functions.adoption.update import Adopted
from constructs_triton_functions.response import CustomResourceError

OLD, NEW = "digits-1", "digits-2"


class SageMaker:
    """An endpoint whose updates need some reads, and end at another configuration
    if they are reverted.
    """

    def __init__(self, reads: int, *, reverts: bool = False) -> None:
        self.meta = boto3.client("sagemaker", region_name="us-east-1").meta
        self.running, self.pending, self.reads, self.left = OLD, "", reads, 0
        self.reverts = reverts
        self.updates: list[dict[str, Any]] = []
        #: The configuration that another run sends first.
        self.sent_first = ""

    def describe_endpoint(self, **_: str) -> dict[str, Any]:
        self.left -= 1
        if self.pending and self.left <= 0:
            self.running = self.running if self.reverts else self.pending
            self.pending = ""
        status = "Updating" if self.pending else "InService"
        more = (
            {"PendingDeploymentSummary": {"EndpointConfigName": self.pending}}
            if self.pending
            else {}
        )
        names = {"EndpointName": "digits", "EndpointConfigName": self.running}
        return {**names, "EndpointStatus": status, **more}

    def update_endpoint(self, **request: Any) -> None:
        if self.sent_first:
            self.pending, self.left, self.sent_first = self.sent_first, self.reads, ""
        if self.pending:
            refusal = {
                "Code": "ValidationException",
                "Message": "Cannot update in-progress endpoint",
            }
            raise ClientError({"Error": refusal}, "UpdateEndpoint")  # type: ignore[typeddict-item]
        self.updates.append(request)
        self.pending, self.left = request["EndpointConfigName"], self.reads


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)


def run(service: SageMaker, polls: int, sent: str = "") -> tuple[bool, str]:
    """Let one run of the function poll so often; returns whether it is done,
    and what it has sent.
    """
    left = iter(range(polls))
    adopted = Adopted("digits", lambda: next(left, None) is None, sent, service)
    return adopted.bring_to(NEW, {"RetainAllVariantProperties": "true"}), adopted.sent


def test_next_run_waits_for_the_update_of_the_first() -> None:
    """The update is sent once, with the types of the API, and the second run sees its end."""
    service = SageMaker(reads=5)
    is_done, sent = run(service, polls=3)
    assert (is_done, sent) == (False, NEW)
    assert run(service, 20, sent) == (True, NEW)
    wanted = {
        "EndpointName": "digits",
        "EndpointConfigName": NEW,
        "RetainAllVariantProperties": True,
    }
    assert service.updates == [wanted]


def test_run_that_died_does_not_send_twice() -> None:
    """A run that does not know what was sent recognizes its own update in progress,
    and its failure.
    """
    service = SageMaker(reads=5, reverts=True)
    run(service, polls=2)
    with pytest.raises(
        CustomResourceError, match=f"configuration {NEW}, got {OLD} .InService.*did not keep"
    ):
        run(service, polls=30, sent="")
    assert len(service.updates) == 1


def test_update_by_hand_is_waited_for() -> None:
    """SageMaker refuses a second update at a time,
    so the function waits for the end of the first.
    """
    service = SageMaker(reads=4)
    service.update_endpoint(EndpointConfigName="third")
    assert run(service, polls=30) == (True, NEW)
    assert [each["EndpointConfigName"] for each in service.updates] == ["third", NEW]


def test_update_that_another_run_has_sent_first_is_waited_for() -> None:
    """Of two runs for one event, and after a lost response, SageMaker refuses the second update.

    It is the wanted one, so that no run reports a failure.
    """
    service = SageMaker(reads=4)
    service.sent_first = NEW
    assert run(service, polls=30) == (True, NEW)


def test_update_that_is_refused_for_another_reason_fails() -> None:
    """An update by hand that begins between the last look and the update is not the wanted one."""
    service = SageMaker(reads=4)
    service.sent_first = "third"
    with pytest.raises(ClientError, match="in-progress"):
        run(service, polls=30)


class Lambda:
    """Keeps the payloads of invocations."""

    def __init__(self) -> None:
        self.payloads: list[Any] = []

    def invoke(self, **request: Any) -> None:
        assert request["InvocationType"] == "Event"
        self.payloads.append(json.loads(request["Payload"]))


def test_function_gives_up_before_cloudformation_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that might end after an hour is not begun, so that CloudFormation gets a reason."""
    invoked, context = Lambda(), SimpleNamespace(invoked_function_arn="arn:function")
    monkeypatch.setattr(continuation, "make_client", lambda _: invoked)
    given = ({"RequestType": "Create"}, context, {"Sent": NEW}, 1000.0, "too late")
    for minutes in (0, 44):
        monkeypatch.setattr("time.time", lambda now=1000.0 + minutes * 60: now)
        continuation.continue_in_another_run(*given)
        assert invoked.payloads.pop() == {"RequestType": "Create", "Continuation": {"Sent": NEW}}
    monkeypatch.setattr("time.time", lambda: 1000.0 + 46 * 60)
    with pytest.raises(CustomResourceError, match="too late"):
        continuation.continue_in_another_run(*given)
