"""Calls that load models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from constructs_triton_client import Invocation, Reply
from constructs_triton_core.errors import InvocationError, ModelNotReadyError
from constructs_triton_tools.operations.warming import (
    calls_for_most_instances,
    expected_instances,
    warm_model,
)

LOADED = "[request id: <id_unknown>] expected 1 inputs but got 0 inputs for model 'm'"


class Answers:
    """A transport that raises or returns what the test lists."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.targets: list[str] = []

    def invoke(self, invocation: Invocation) -> Reply:
        self.targets.append(invocation.options["TargetModel"])
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer
        return Reply(b"{}", "application/json")

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        raise NotImplementedError


def refused(message: str) -> InvocationError:
    return InvocationError(message, status=400, model_message=message)


def test_a_model_that_rejects_the_empty_request_is_loaded() -> None:
    """Only a loaded model knows its inputs; a model that is still loading is called again."""
    transport = Answers(ModelNotReadyError("loading"), refused(LOADED), None)
    pauses: list[float] = []
    result = warm_model(transport, "m.tar.gz", 2, pause=pauses.append)
    assert (result.calls, result.error) == (2, None)
    assert transport.targets == ["m.tar.gz"] * 3
    assert len(pauses) == 1


def test_a_model_that_cannot_be_loaded_is_reported() -> None:
    """The endpoint's message is the reason, and the model is not called again."""
    result = warm_model(
        Answers(refused("failed to load 'm', failed to poll from model repository")), "m", 3
    )
    assert result.calls == 0
    assert result.error is not None
    assert "failed to load" in str(result.error)


@pytest.mark.parametrize(
    ("calls", "instances", "reached"), [(1, 1, 1.0), (1, 4, 1.0), (2, 2, 1.5), (3, 2, 1.75)]
)
def test_random_calls_reach_some_instances_on_average(
    calls: int, instances: int, reached: float
) -> None:
    """Each instance is missed by a call with the probability (n - 1) / n."""
    assert expected_instances(calls, instances) == reached


@pytest.mark.parametrize("instances", range(1, 20))
def test_the_default_reaches_most_instances(instances: int) -> None:
    """95 percent of the instances on average, and one call less does not."""
    calls = calls_for_most_instances(instances)
    assert expected_instances(calls, instances) >= 0.95 * instances
    assert calls == 1 or expected_instances(calls - 1, instances) < 0.95 * instances
