"""Faults at every call of the function that adopts an endpoint: nothing of the endpoint is lost.

The function's own code runs against a simulated account. Calls are numbered, and each kind of fault
happens at each number, in a run of its own with an endpoint of its own: with ``EVERY_CALL=1`` at
every one, else at one in five.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import boto3
import pytest
from adopted_app import Notebook
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from sync_faults import Calls, Effect, KilledError, killed_after, killed_before, lost, time_up
from sync_requests import Context

from cdk_rehearse import SimulatedAccount
from constructs_triton_functions import response as responses
from constructs_triton_functions.adoption import handler
from constructs_triton_functions.retries import RETRIES

BUDGET_MINUTES = 4
STEP = 1 if os.environ.get("EVERY_CALL") == "1" else 5
# A connection that the fault breaks leaves its socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
Event = dict[str, Any]
_STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/adopting/1"
_LOGICAL_ID = "Digits"


def _answer(request: Any, code: str) -> AWSResponse:
    body = json.dumps({"__type": code, "message": "injected"}).encode()
    raw = SimpleNamespace(stream=lambda: iter([body]))
    return AWSResponse(request.url, 400, HTTPHeaders(), raw)


def throttled(_: Calls, __: Any, request: Any) -> AWSResponse:
    """The service asks for fewer requests."""
    return _answer(request, "ThrottlingException")


def refused(_: Calls, __: Any, request: Any) -> AWSResponse:
    """The service refuses the call for a reason that a repetition does not change."""
    return _answer(request, "ValidationException")


SURVIVED: dict[str, Effect] = {"throttled": throttled, "lost response": lost, "time up": time_up}
"""Faults after which the same request succeeds."""
KILLED: dict[str, Effect] = {
    "killed before the call": killed_before,
    "killed after the call": killed_after,
}
"""Faults that end the run; Lambda delivers the event again."""


class _Clocked(Context):
    """A context whose time ends when the calls say so."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def get_remaining_time_in_millis(self) -> int:
        return 10_000 if self._calls.is_time_up else 900_000


@dataclass
class Function:
    """The function, whose calls are counted, and the responses that CloudFormation gets."""

    aws: SimulatedAccount
    calls: Calls = field(default_factory=Calls)
    responses: list[dict[str, Any]] = field(default_factory=list)
    handed_over: list[Event] = field(default_factory=list)
    clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str, **_: Any) -> Any:
        """Return the client that the function gets in place of that of ``boto3.client``."""
        if service == "lambda":
            return SimpleNamespace(
                invoke=lambda **given: self.handed_over.append(json.loads(given["Payload"]))
            )
        if service not in self.clients:
            client = self.clients[service] = _client(self.aws, service)
            client.meta.events.register_first(
                f"before-send.{client.meta.service_model.service_id.hyphenize()}",
                lambda request, event_name, **_: self.calls.intercept(
                    client, request, event_name.rsplit(".", 1)[1]
                ),
            )
        return self.clients[service]

    def respond(self, _: str, body: bytes) -> None:
        if self.calls.is_killed:
            raise KilledError
        self.responses.append(json.loads(body))

    def run(self, event: Event, calls: Calls | None = None) -> list[str]:
        """Run the function for one event, and return the statuses that CloudFormation got."""
        before, self.calls = self.calls, calls or Calls()
        received = len(self.responses)
        try:
            with suppress(KilledError):
                handler.handler(event, _Clocked(self.calls))
        finally:
            self.calls = before
        found = self.responses[received:]
        while self.handed_over:
            found += self._continued(self.handed_over.pop())
        return [f"{each['Status']} {each['Reason']}".strip() for each in found]

    def _continued(self, event: Event) -> list[dict[str, Any]]:
        received = len(self.responses)
        self.run(event)
        return self.responses[received:]


def _client(aws: SimulatedAccount, service: str) -> Any:
    """Return a client with the retries of the function, of the administrator of the account."""
    make: Any = boto3.client  # typed by the name of the service, which is known only at run time
    return make(
        service,
        endpoint_url=aws.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(retries=RETRIES),
    )


# Requests.


def request(notebook: Notebook, kind: str, config: str, old: str = "") -> Event:
    """Return a request of CloudFormation for a stack that wants this configuration."""
    event: Event = {
        "RequestType": kind,
        "RequestId": f"{kind}-{config}",
        "ResponseURL": "https://cloudformation/response",
        "StackId": _STACK,
        "LogicalResourceId": _LOGICAL_ID,
        "ResourceProperties": _properties(notebook, config),
    }
    if kind != "Create":
        event["PhysicalResourceId"] = f"arn:aws:sagemaker:::endpoint/{notebook.name}"
    if old:
        event["OldResourceProperties"] = _properties(notebook, old)
    return event


def _properties(notebook: Notebook, config: str) -> dict[str, Any]:
    return {
        "EndpointName": notebook.name,
        "EndpointConfigName": f"{notebook.name}-{config}",
        "RetainAllVariantProperties": "true",
        "Tags": [{"Key": "team", "Value": config}],
    }


def _rolled_back(event: Event) -> Event:
    """Return the request by which CloudFormation takes a request back that failed."""
    if event["RequestType"] == "Create":
        return {**event, "RequestType": "Delete", "PhysicalResourceId": f"{_LOGICAL_ID}-failed"}
    if event["RequestType"] == "Update":
        now, old = event["ResourceProperties"], event["OldResourceProperties"]
        return {**event, "ResourceProperties": old, "OldResourceProperties": now}
    return event


@dataclass(frozen=True)
class Scenario:
    """Requests that have succeeded, and the one in which a fault happens."""

    before: tuple[tuple[str, ...], ...]
    last: tuple[str, ...]


SCENARIOS = {
    "created": Scenario((), ("Create", "first")),
    "updated": Scenario((("Create", "first"),), ("Update", "second", "first")),
    "deleted": Scenario((("Create", "first"),), ("Delete", "first")),
}


@dataclass
class Trials:
    """A scenario, and what the endpoint is before its last request and after it."""

    function: Function
    scenario: Scenario
    calls: int = 0
    operations: list[str] = field(default_factory=list)
    before: Any = None
    wanted: Any = None

    def begun(self) -> tuple[Notebook, Event]:
        """Return an endpoint of its own after the first requests, and the last request."""
        notebook = Notebook(self.function.aws).create().scale()
        for config in ("first", "second"):
            variant = {
                "VariantName": "AllTraffic",
                "ModelName": f"{notebook.name}-model",
                # Another type than that of the endpoint: SageMaker refuses it while scaling is on.
                "InstanceType": "ml.c6i.xlarge",
                "InitialInstanceCount": 3,
                "InitialVariantWeight": 1,
            }
            notebook.sagemaker.create_endpoint_config(
                EndpointConfigName=f"{notebook.name}-{config}", ProductionVariants=[variant]
            )
        for words in self.scenario.before:
            assert self.function.run(request(notebook, *words)) == ["SUCCESS"]
        return notebook, request(notebook, *self.scenario.last)

    def each_call(self) -> Iterator[int]:
        """Yield the number of each call to try.

        Each test begins elsewhere, so that all of them together try every call.
        """
        first = crc32(os.environ["PYTEST_CURRENT_TEST"].encode()) % STEP
        yield from range(first, self.calls, STEP)

    def at(self, number: int) -> str:
        return f"call {number}, {self.operations[number]}"


def state(notebook: Notebook) -> Any:
    """Return what the endpoint is, and what is recorded of it, without the endpoint's name."""
    ssm = notebook.aws.client("ssm")
    try:
        found = ssm.get_parameter(Name=f"/constructs-triton/adopted/{notebook.name}")
    except ssm.exceptions.ParameterNotFound:
        record = ""
    else:
        record = found["Parameter"]["Value"]
    text = json.dumps({**notebook.everything(), "record": record}, sort_keys=True)
    return json.loads(text.replace(notebook.name, "NAME"))


def _without_history(state: Any) -> Any:
    """Return a state without the configurations that the stack has asked for."""
    record = [{**each, "configs": []} for each in json.loads(state["record"] or "[]")]
    return {**state, "record": record}


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        yield account


@pytest.fixture(params=SCENARIOS)
def trials(
    request: pytest.FixtureRequest, aws: SimulatedAccount, monkeypatch: pytest.MonkeyPatch
) -> Trials:
    function = Function(aws)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(responses, "_put", function.respond)
    for module in _modules_with_clients():
        monkeypatch.setattr(module, "make_client", function.client)
    trials = Trials(function, SCENARIOS[request.param])
    notebook, event = trials.begun()
    trials.before = state(notebook)
    calls = Calls()
    assert function.run(event, calls) == ["SUCCESS"]
    trials.calls, trials.operations, trials.wanted = calls.count, calls.operations, state(notebook)
    print(f"{request.param}: {calls.count} calls")  # noqa: T201 - a figure of the page
    return trials


def _modules_with_clients() -> list[Any]:
    from constructs_triton_functions import continuation, endpoint_state, scaling
    from constructs_triton_functions.adoption import claims, update

    return [continuation, endpoint_state, scaling, claims, update]


# Tests.


@pytest.mark.parametrize("fault", SURVIVED)
def test_request_succeeds_in_spite_of_a_fault(trials: Trials, fault: str) -> None:
    """The request succeeds as if nothing had happened."""
    for number in trials.each_call():
        notebook, event = trials.begun()
        found = trials.function.run(event, Calls(number, SURVIVED[fault]))
        where = f"{fault} at {trials.at(number)}"
        assert found == ["SUCCESS"], f"{where}: {found}"
        assert state(notebook) == trials.wanted, where


@pytest.mark.parametrize("fault", KILLED)
def test_killed_run_is_completed_by_the_next(trials: Trials, fault: str) -> None:
    """No response is sent, and the event that Lambda delivers again completes the request."""
    for number in trials.each_call():
        notebook, event = trials.begun()
        where = f"{fault} at {trials.at(number)}"
        assert trials.function.run(event, Calls(number, KILLED[fault])) == [], where
        found = trials.function.run(event)
        assert found == ["SUCCESS"], f"{where}: {found}"
        assert state(notebook) == trials.wanted, where


def test_refused_call_is_taken_back(trials: Trials) -> None:
    """The request fails with a reason that names the endpoint. The rollback restores everything;
    a deletion is repeated.
    """
    is_deletion = trials.scenario.last[0] == "Delete"
    for number in trials.each_call():
        notebook, event = trials.begun()
        where = trials.at(number)
        (found,) = trials.function.run(event, Calls(number, refused))
        assert found.startswith("FAILED"), where
        back = trials.function.run(_rolled_back(event))
        assert back == ["SUCCESS"], f"{where}: {back}"
        expected = trials.wanted if is_deletion else trials.before
        assert _without_history(state(notebook)) == _without_history(expected), where


def test_two_invocations_of_one_request_at_once(trials: Trials) -> None:
    """Lambda may deliver an event twice: both succeed, wherever the other one comes between."""
    for number in trials.each_call():
        notebook, event = trials.begun()

        def second(_: Calls, __: Any, ___: Any, event: Event = event) -> None:
            trials.function.run(event)

        found = trials.function.run(event, Calls(number, second))
        where = trials.at(number)
        assert found == ["SUCCESS", "SUCCESS"], f"{where}: {found}"
        assert state(notebook) == trials.wanted, where
