"""What observers receive of calls, and the lines that CloudWatch reads."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from loopback_server import SESSION, Answer, Server, binary_answer, run_server
from test_waking import INPUTS, Sleeping

from constructs_triton_client import (
    InMemoryTransport,
    TritonClient,
    default_config,
)
from constructs_triton_client.observed_calls import EmbeddedMetrics, ObservedCall
from constructs_triton_core.errors import (
    InvalidValueError,
    InvocationError,
    ModelNotReadyError,
    RequestEncodingError,
    ResponseDecodingError,
)

STREAM = [b'data: {"a":1}\n\n', b'data: {"a":2}\n\n']
NOT_READY = Answer(429, b"{}", {"x-amzn-ErrorType": "ModelNotReadyException"})


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server() as server:
        yield server


@pytest.fixture
def calls() -> list[ObservedCall]:
    """The calls that an observer received."""
    return []


def for_endpoint(
    server: Server, calls: list[ObservedCall], target_model: str | None = None
) -> TritonClient:
    """A client whose boto3 sends a request at most twice."""
    return TritonClient.for_endpoint(
        "digits",
        session=SESSION,
        endpoint_url=server.url,
        config=default_config(max_attempts=2),
        observe=calls.append,
        target_model=target_model,
    )


@pytest.mark.parametrize("observe", [[], "calls", {}])
def test_observer_that_cannot_be_called_is_rejected(observe: Any) -> None:
    """The client is not created, so no call is sent whose result would be lost."""
    message = (
        rf"observe: must be a function of .*, got {type(observe).__name__}; "
        ".*write observe=calls.append"
    )
    with pytest.raises(InvalidValueError, match=message):
        TritonClient.for_endpoint("digits", observe=observe)


def test_call_that_succeeds_after_a_retry(server: Server, calls: list[ObservedCall]) -> None:
    """The time contains the wait before boto3's retry,
    which the latency that SageMaker measures does not.
    """
    server.answers = [NOT_READY, binary_answer()]
    result = for_endpoint(server, calls).infer(INPUTS)
    [call] = calls
    assert (call.endpoint_name, call.model_name, call.retries, call.error) == (
        "digits",
        "",
        1,
        None,
    )
    assert call.latency_seconds >= (result.latency_seconds or 0) > 0


def test_call_that_fails_after_all_retries(server: Server, calls: list[ObservedCall]) -> None:
    """The error that the caller gets is in the record, with the retries of boto3."""
    server.answers = [NOT_READY]
    with pytest.raises(ModelNotReadyError) as raised:
        for_endpoint(server, calls, target_model="resnet.tar.gz").infer(INPUTS)
    [call] = calls
    assert call.error is raised.value
    assert (call.model_name, call.retries) == ("resnet.tar.gz", 1)


def test_attempts_of_wake_timeout_are_retries(
    monkeypatch: pytest.MonkeyPatch, calls: list[ObservedCall]
) -> None:
    """Each repetition while a component has no copy counts, for plain calls and for streams."""
    monkeypatch.setattr(time, "sleep", lambda _: None)

    def waking(refusals: int) -> TritonClient:
        transport = Sleeping(refusals)
        return TritonClient(
            transport, inference_component="chat", wake_timeout=60, observe=calls.append
        )

    waking(3).infer(INPUTS)
    list(waking(2).infer_stream({"a": 1}))
    assert [(call.retries, call.model_name) for call in calls] == [(3, "chat"), (2, "chat")]


def test_stream_has_the_time_of_its_first_event(calls: list[ObservedCall]) -> None:
    """A stream is reported once, at its end, with the earlier time of its first event."""
    stream = TritonClient(InMemoryTransport(dict, parts=STREAM), observe=calls.append).infer_stream(
        {}
    )
    next(stream)
    time.sleep(0.02)
    assert calls == []
    assert len(list(stream)) == 1
    [call] = calls
    assert call.first_event_seconds is not None
    assert call.latency_seconds - call.first_event_seconds >= 0.02
    assert call.error is None


def test_stream_that_is_closed_is_no_error(calls: list[ObservedCall]) -> None:
    """The caller may stop reading a stream, which is then reported without an error."""
    stream = TritonClient(InMemoryTransport(dict, parts=STREAM), observe=calls.append).infer_stream(
        {}
    )
    next(stream)
    stream.close()
    assert [call.error for call in calls] == [None]


@pytest.mark.parametrize(
    ("part", "error"),
    [(b'data: {"error":"x"}\n\n', InvocationError), (b"data: 1\n\n", ResponseDecodingError)],
)
def test_error_in_a_stream_is_reported(
    part: bytes, error: type[Exception], calls: list[ObservedCall]
) -> None:
    """An error after the first event, which has status 200, is an error of the call."""
    client = TritonClient(InMemoryTransport(dict, parts=[STREAM[0], part]), observe=calls.append)
    with pytest.raises(error):
        list(client.infer_stream({}))
    assert [type(call.error) for call in calls] == [error]


def test_request_that_is_not_sent_is_not_observed(calls: list[ObservedCall]) -> None:
    """An input that cannot be encoded is an error of the program, not a call."""
    client = TritonClient(InMemoryTransport(dict), observe=calls.append)
    with pytest.raises(RequestEncodingError):
        client.infer({"X": np.array([object()])})
    assert calls == []


@pytest.mark.parametrize(
    ("call", "dimensions", "values"),
    [
        (
            ObservedCall("digits", "", 0.25, retries=1, error=ValueError()),
            {"EndpointName": "digits"},
            {"Latency": (250, "Milliseconds"), "Errors": (1, "Count"), "Retries": (1, "Count")},
        ),
        (
            ObservedCall("chat", "qwen", 2.0, first_event_seconds=0.5),
            {"EndpointName": "chat", "ModelName": "qwen"},
            {
                "Latency": (2000, "Milliseconds"),
                "FirstEvent": (500, "Milliseconds"),
                "Errors": (0, "Count"),
                "Retries": (0, "Count"),
            },
        ),
    ],
)
def test_line_of_a_call(
    call: ObservedCall,
    dimensions: dict[str, str],
    values: dict[str, tuple[float, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line is one JSON object whose metrics and dimensions are members of it,
    as CloudWatch requires.
    """
    before = time.time() * 1000
    EmbeddedMetrics("Shop")(call)
    [text] = capsys.readouterr().out.splitlines()
    line = json.loads(text)
    aws = line.pop("_aws")
    [rule] = aws["CloudWatchMetrics"]
    assert before - 1 <= aws["Timestamp"] <= time.time() * 1000
    assert rule["Namespace"] == "Shop"
    assert rule["Dimensions"] == [list(dimensions)]
    assert {
        metric["Name"]: (line[metric["Name"]], metric["Unit"]) for metric in rule["Metrics"]
    } == values
    assert line == dimensions | {name: value for name, (value, _) in values.items()}
