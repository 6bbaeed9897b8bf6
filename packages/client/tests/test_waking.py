"""Requests to inference components, also to one that has no copies yet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from constructs_triton_client import Invocation, Reply, TritonClient
from constructs_triton_client.errors import build_invocation_error
from constructs_triton_client.wire import encode_response
from constructs_triton_core.errors import InvalidValueError, InvocationError, NoCapacityError

# AWS's answer, as aws-samples/sagemaker-genai-hosting-examples quotes it.
NO_CAPACITY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be "
    "in-progress (if configured) or try to increase the capacity by invoking "
    "UpdateInferenceComponentRuntimeConfig API."
)
INPUTS = {"X": np.ones((1, 2), dtype=np.float32)}


def refusal(message: str) -> InvocationError:
    return build_invocation_error(
        "shared",
        "the request was rejected",
        code="ValidationError",
        status=400,
        model_message=message,
    )


class Sleeping:
    """A transport whose component answers after some refusals."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.sent: list[Invocation] = []

    def invoke(self, invocation: Invocation) -> Reply:
        self._receive(invocation)
        response = encode_response({"Y": np.zeros(1, dtype=np.float32)})
        return Reply(response.body, response.content_type)

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        self._receive(invocation)
        yield b'data: {"a":1}\n\n'

    def _receive(self, invocation: Invocation) -> None:
        self.sent.append(invocation)
        if len(self.sent) <= self.refusals:
            raise refusal(NO_CAPACITY)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits; the time passes only in them."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(waits))
    return waits


def client(transport: Sleeping, **options: Any) -> TritonClient:
    return TritonClient(transport, inference_component="digits", **options)


def test_each_request_names_the_component() -> None:
    """The component of the client is in every request, and a request may name another one."""
    transport = Sleeping(0)
    client(transport).infer(INPUTS)
    list(client(transport).infer_stream({"x": 1}))
    client(transport).infer(INPUTS, InferenceComponentName="alerts")
    names = [each.options["InferenceComponentName"] for each in transport.sent]
    assert names == ["digits", "digits", "alerts"]


def test_client_waits_for_the_first_copy(clock: list[float]) -> None:
    """The request is repeated after waits of 1 to 30 seconds until there is a copy."""
    transport = Sleeping(7)
    assert client(transport, wake_timeout=900).infer(INPUTS)["Y"].tolist() == [0.0]
    assert clock == [1, 2, 4, 8, 16, 30, 30]


def test_stream_waits_for_the_first_copy(clock: list[float]) -> None:
    """A stream begins when there is a copy."""
    assert list(client(Sleeping(2), wake_timeout=10).infer_stream({"x": 1})) == [{"a": 1}]
    assert clock == [1, 2]


def test_end_of_the_wait_says_what_happened(clock: list[float]) -> None:
    """After the timeout the error has SageMaker's message, the time waited, and what to do."""
    with pytest.raises(
        NoCapacityError, match=r"has no capacity.*; waited 10 s .*raise wake_timeout"
    ) as raised:
        client(Sleeping(99), wake_timeout=10).infer(INPUTS)
    assert sum(clock) == 10
    assert raised.value.status == 400
    assert raised.value.model_message == NO_CAPACITY


def test_client_does_not_wait_by_default(clock: list[float]) -> None:
    """Without a timeout the first refusal is raised, and says how to wait."""
    with pytest.raises(NoCapacityError, match="set wake_timeout on the client"):
        client(Sleeping(1)).infer(INPUTS)
    assert clock == []


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        (
            "Inference Component Name header is required for endpoints to which you",
            "set inference_component",
        ),
        (
            "Inference Component Name header is not allowed for endpoints to which",
            "remove inference_component",
        ),
        ("Could not find inference component", "check the name"),
    ],
)
def test_other_messages_about_components_have_hints(message: str, hint: str) -> None:
    """Each message of SageMaker about components is followed by what to do."""
    error = refusal(message)
    assert type(error) is InvocationError
    assert hint in str(error)


def test_what_components_do_not_support_is_refused() -> None:
    """A component has no target models and no queue, and a timeout is a number."""
    with pytest.raises(InvalidValueError, match=r'target_model: a component .* "a.tar.gz"'):
        client(Sleeping(0), target_model="a.tar.gz")
    with pytest.raises(InvalidValueError, match="InvokeEndpointAsync does not support components"):
        client(Sleeping(0)).infer_async(INPUTS, input_location="s3://bucket/in/")
    for wrong in (-1, "900", True, float("nan")):
        with pytest.raises(InvalidValueError, match="wake_timeout: must be a number of seconds"):
            client(Sleeping(0), wake_timeout=wrong)
