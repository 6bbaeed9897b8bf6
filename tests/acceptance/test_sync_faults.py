"""Faults at every call of the model sync: nothing is lost, and a repetition completes it.

Calls are numbered, and each kind of fault happens at each number in a run of its own: with
``EVERY_CALL=1`` at every one, else at one in five. The table of
``dev/project/deploy_time_faults.md`` lists what must follow, and what is not tried.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pytest
from sync_faults import (
    Calls,
    Effect,
    Event,
    Function,
    cut,
    killed_after,
    killed_before,
    lost,
    refused,
    throttled,
    time_up,
)
from sync_requests import cloudformation, s3, small_parts
from sync_scenarios import SCENARIOS, Scenario

__all__ = ["cloudformation", "s3", "small_parts"]  # fixtures

BUDGET_MINUTES = 4
STEP = 1 if os.environ.get("EVERY_CALL") == "1" else 5
# A connection that the fault breaks leaves its socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)

SURVIVED: dict[str, Effect] = {
    "throttled": throttled,
    "lost response": lost,
    "body cut": cut,
    "time up": time_up,
}
"""Faults after which the same request succeeds."""
ENDED: dict[str, Effect] = {
    "refused": refused,
    "killed before the call": killed_before,
    "killed after the call": killed_after,
}
"""Faults that end the request, which Lambda, CloudFormation or a person then repeats."""


@dataclass
class Trials:
    """A scenario, and what S3 holds after it without a fault."""

    function: Function
    scenario: Scenario
    calls: int
    operations: list[str]
    before: Any
    wanted: dict[str, Any]

    def each_call(self) -> Iterator[int]:
        """Yield the number of each call to try, with the bucket as it was before the request.

        Each test begins elsewhere, so that all of them together try every call.
        """
        first = crc32(os.environ["PYTEST_CURRENT_TEST"].encode()) % STEP
        for number in range(first, self.calls, STEP):
            self.function.restore(self.before)
            yield number

    def expect_wanted(self, where: str) -> None:
        assert self.function.state() == self.wanted, where


@pytest.fixture(params=SCENARIOS)
def trials(
    request: pytest.FixtureRequest,
    s3: Any,
    cloudformation: Any,
    small_parts: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Trials:
    function = Function.installed(s3, cloudformation, monkeypatch)
    scenario = SCENARIOS[request.param](s3, cloudformation)
    scenario.begin(function)
    before = function.saved()
    calls = Calls()
    assert function.run_to_the_end(scenario.event, calls) == ["SUCCESS"]
    print(f"{request.param}: {calls.count} calls")  # noqa: T201 - a figure of the page
    return Trials(function, scenario, calls.count, calls.operations, before, function.state())


@pytest.mark.parametrize("fault", SURVIVED)
def test_request_succeeds_in_spite_of_a_fault(trials: Trials, fault: str) -> None:
    """The request succeeds as if nothing had happened."""
    for number in trials.each_call():
        where = f"{fault} at call {number}, {trials.operations[number]}"
        found = trials.function.run_to_the_end(
            trials.scenario.event, Calls(number, SURVIVED[fault])
        )
        assert set(found) == {"SUCCESS"}, f"{where}: {found}"
        if fault == "time up":  # a later deployment prunes what this one had no time for
            assert trials.function.run_to_the_end(trials.scenario.event) == ["SUCCESS"], where
        trials.expect_wanted(where)


@pytest.mark.parametrize("fault", ENDED)
def test_request_can_be_repeated_after_a_fault(trials: Trials, fault: str) -> None:
    """The index names only what is in place, and a repetition completes the request."""
    for number in trials.each_call():
        where = f"{fault} at call {number}, {trials.operations[number]}"
        found = trials.function.run_to_the_end(trials.scenario.event, Calls(number, ENDED[fault]))
        assert all(each.startswith("FAILED") for each in found), f"{where}: {found}"
        assert len(found) == (fault == "refused"), where
        if trials.scenario.event["RequestType"] != "Delete":
            trials.function.expect_named_objects()
        assert trials.function.run_to_the_end(trials.scenario.event) == ["SUCCESS"], where
        trials.expect_wanted(where)


def test_rollback_succeeds_after_a_refused_call(trials: Trials) -> None:
    """After an update that failed, the update to the old properties restores the old names."""
    event = trials.scenario.event
    if event["RequestType"] != "Update":
        pytest.skip("only an update is rolled back by an update")
    old = {
        **event,
        "ResourceProperties": event["OldResourceProperties"],
        "OldResourceProperties": event["ResourceProperties"],
    }
    trials.function.restore(trials.before)
    before = _names(trials.function)
    for number in trials.each_call():
        where = f"call {number}, {trials.operations[number]}"
        trials.function.run(event, Calls(number, refused))
        assert trials.function.run_to_the_end(old) == ["SUCCESS"], where
        assert _names(trials.function) == before, where
        trials.function.expect_named_objects()


def test_two_invocations_of_one_request_at_once(trials: Trials) -> None:
    """Lambda may deliver an event twice: both succeed, wherever the other one comes between."""
    for number in trials.each_call():
        where = f"call {number}, {trials.operations[number]}"
        found = trials.function.run_to_the_end(
            trials.scenario.event, Calls(number, _meanwhile(trials, trials.scenario.event))
        )
        assert found == ["SUCCESS", "SUCCESS"], f"{where}: {found}"
        trials.expect_wanted(where)


def test_two_runs_continue_one_upload_at_once(trials: Trials) -> None:
    """A run whose time is up passes its upload on, perhaps to two runs: both succeed."""
    if "UploadPartCopy" not in trials.operations:
        pytest.skip("nothing is copied in parts")
    first_part = trials.operations.index("UploadPartCopy")
    for number in trials.each_call():
        trials.function.run(trials.scenario.event, Calls(first_part, time_up))
        passed_on = trials.function.handed_over.pop()
        assert passed_on["Continuation"]["Uploads"]
        found = trials.function.run_to_the_end(
            passed_on, Calls(number, _meanwhile(trials, passed_on))
        )
        assert set(found) == {"SUCCESS"}, f"call {number}: {found}"
        trials.expect_wanted(f"call {number}")


def test_another_stack_at_the_same_time(trials: Trials) -> None:
    """A stack with the same prefix and the content before deploys at each call: both have
    their models.
    """
    event = trials.scenario.event
    if event["RequestType"] != "Update":
        pytest.skip("only an update prunes")
    first = trials.scenario.before[-1]
    other = {**first, "StackId": event["StackId"].replace("stack/s/", "stack/other/")}
    other["ResourceProperties"] = {
        **other["ResourceProperties"],
        "EncryptionKey": event["ResourceProperties"].get("EncryptionKey"),
    }
    for number in trials.each_call():
        where = f"call {number}, {trials.operations[number]}"
        found = trials.function.run_to_the_end(event, Calls(number, _meanwhile(trials, other)))
        assert found == ["SUCCESS", "SUCCESS"], f"{where}: {found}"
        trials.function.expect_named_objects()


def _meanwhile(trials: Trials, event: Event) -> Effect:
    """An effect that runs the function for another event, while the first one waits."""

    def run(calls: Calls, _: Any, __: Any) -> None:
        trials.function.run(event)

    return run


def _names(function: Function) -> dict[str, Any]:
    return {
        key: found[0]["target_models"]
        for key, found in function.state().items()
        if key.endswith("index.json")
    }
