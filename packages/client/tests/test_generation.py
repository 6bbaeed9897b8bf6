"""Requests and events of generating models."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from chat_streams import (
    ANSWER,
    CHUNKS,
    ERROR,
    LMI,
    LMI_FAILED,
    ROLE,
    STOP,
    USAGE,
    WHOLE,
    WORDS,
    events,
    lines,
)

from constructs_triton_client import InMemoryTransport, TritonClient
from constructs_triton_client.generation import encode_generation, read_generation
from constructs_triton_core.errors import (
    InvocationError,
    RequestEncodingError,
    ResponseDecodingError,
)


def test_fields_become_flat_json() -> None:
    """Arrays become lists, NumPy scalars numbers, and bytes strings."""
    arrays = {"a": np.array([1, 2]), "b": np.float32(0.5), "c": "grün".encode()}
    request = encode_generation({**arrays, "d": "x", "e": [1], "f": True})
    assert request.header_size is None
    assert request.body.isascii()
    assert json.loads(request.body) == {
        "a": [1, 2],
        "b": 0.5,
        "c": "grün",
        "d": "x",
        "e": [1],
        "f": True,
    }
    assert encode_generation({"a": 1, "b": [2]}).body == b'{"a":1,"b":[2]}'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "not JSON compliant"),
        (b"\xff", "invalid start byte"),
        (
            object,
            r"got type <class 'object'>; pass a dict of strings, finite numbers, lists or arrays",
        ),
        (lambda: "x" * 100, "got function <function <lambda> at"),
    ],
)
def test_field_without_json_form_is_rejected(value: Any, message: str) -> None:
    """A value that JSON cannot represent is an error before anything is sent."""
    with pytest.raises(RequestEncodingError, match=message) as caught:
        encode_generation({"a": value})
    assert str(caught.value).startswith("generate request: a field cannot be written as JSON, got ")
    assert len(str(caught.value)) < 200


MODEL_ERROR = b'data: {"a":1}\n\ndata: {"error":"no tokens"}\n\n'
ONE_RESPONSE = (
    b'{"error":"generate expects model to produce exactly 1 response, use generate stream"}'
)
NO_TENSORS = b'{"error":"Unable to parse \'inputs\': attempt to access non-existing object member"}'


@pytest.mark.parametrize(
    ("stream", "error", "message"),
    [
        (MODEL_ERROR, InvocationError, "event 1: the model failed, got no"),
        (
            ONE_RESPONSE,
            InvocationError,
            "event 0: .*; set inference_type to generate_stream on the endpoint",
        ),
        (
            NO_TENSORS,
            InvocationError,
            "event 0: .*; the endpoint runs with inference_type infer, so send tensors",
        ),
        (
            b"data: [1]\n\n",
            ResponseDecodingError,
            r"event 0: must .* object, got '\[1\]'; set inference_type",
        ),
        (
            b"<html>\n",
            ResponseDecodingError,
            r"a line must begin with data:, got b'<html>'; check that the",
        ),
        (b"data: {\n\n", ResponseDecodingError, "event 0: must be a JSON object"),
        (
            b"data: " + b"[" * 100_000 + b"\n\n",
            ResponseDecodingError,
            "event 0: must be a JSON object",
        ),
    ],
)
def test_malformed_events_are_errors(stream: bytes, error: type[Exception], message: str) -> None:
    """A model's error and an event that is not an object name the event."""
    with pytest.raises(error, match=message) as caught:
        list(TritonClient(InMemoryTransport(dict, parts=[stream])).infer_stream({}))
    assert len(str(caught.value)) < 300


def test_an_output_named_error_is_not_an_error() -> None:
    """Triton's errors have no model_name, and its responses have one."""
    (event,) = read_generation([b'data: {"error":"none","model_name":"m"}\n\n'])
    assert event["error"] == "none"


def test_the_json_of_inference_type_generate_is_one_event() -> None:
    """It has no frame of an event, and may be cut anywhere."""
    body = b'{"model_name":"m","text_output":"data: 1"}'
    for parts in ([body], [body[:1], body[1:]], [body, b"\n"]):
        assert [event.text() for event in read_generation(parts)] == ["data: 1"]


def test_only_the_given_fields_are_sent() -> None:
    """A request has no id unless the caller sets one:
    Triton hands it to the model as a parameter.
    """
    transport = InMemoryTransport(dict, parts=[b'data: {"id":"7","model_name":"m"}\n\n'])
    (event,) = TritonClient(transport).infer_stream({"text_input": "x"})
    assert event.id == "7"
    assert json.loads(transport.calls[0].invocation.body) == {"text_input": "x"}


def test_events_before_an_error_are_yielded() -> None:
    """The events before a model's error are yielded first, and the error has the whole message."""
    said = "x" * 1000
    events = read_generation([b'data: {"a":1}\n\n', f'data: {{"error":"{said}"}}\n\n'.encode()])
    assert next(events) == {"a": 1}
    with pytest.raises(InvocationError) as caught:
        next(events)
    assert caught.value.model_message == said
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("stream", "chunks"), [(events(CHUNKS), CHUNKS), (lines(CHUNKS), CHUNKS), (lines(LMI), LMI)]
)
def test_events_of_chats_are_the_same_however_they_are_cut(
    stream: bytes, chunks: list[dict[str, Any]]
) -> None:
    """Server-sent events with [DONE] and JSON lines, cut within lines, characters and line ends."""
    for size in (*range(1, 12), len(stream)):
        parts = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [dict(each) for each in read_generation(parts)] == chunks


def test_client_streams_a_chat() -> None:
    """The body is sent as it is given; the choices are those of the container."""
    transport = InMemoryTransport(dict, parts=[events(CHUNKS)])
    body = {"messages": [{"role": "user", "content": "grüß"}], "stream": True}
    answer = [
        each["choices"][0]["delta"].get("content", "")
        for each in TritonClient(transport).infer_stream(body)
        if each["choices"]
    ]
    assert "".join(answer) == ANSWER
    assert json.loads(transport.calls[0].invocation.body) == body


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (
            events([ROLE, *WORDS, ERROR]),
            "event 4: the model failed, got out of memory; see the endpoint's log",
        ),
        (lines([ROLE, {"code": 424, "error": "broke"}]), "event 1: the model failed, got broke"),
        (lines(LMI_FAILED), "event 1: the model failed, got error"),
        (
            events(
                [ROLE, {**STOP, "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}]
            ),
            "event 1: the model",
        ),
        (
            json.dumps(WHOLE).encode(),
            'event 0: is a whole response; add "stream": true to the request',
        ),
        (b'{"generated_text":"a b."}\n', "event 0: is a whole response"),
        (
            events([ROLE, *WORDS], is_done=False),
            "event stream: the response is incomplete; see the endpoint's log, and",
        ),
        (lines([ROLE]), "event stream: the response is incomplete"),
    ],
)
def test_what_fails_in_a_chat_is_an_error(stream: bytes, message: str) -> None:
    """Errors have status 200; a stream without an end was cut off;
    without "stream" there is one response.
    """
    with pytest.raises(InvocationError) as raised:
        list(read_generation([stream]))
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "stream", [events([ROLE, *WORDS]), lines([ROLE, STOP]), events([USAGE], is_done=False)]
)
def test_one_sign_of_the_end_is_enough(stream: bytes) -> None:
    """[DONE] or a finish_reason; and an error that is null is none."""
    assert list(read_generation([stream, lines([{**STOP, "error": None}])]))
