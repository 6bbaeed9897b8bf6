"""Triton's generate extension behind SageMaker's API, with the real server:
each answer as it arrives.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from generating_models import generating_ensemble, generating_model
from local_assembly import AssemblyBuilder
from local_network import listening, processes_of
from local_processes import folders, log_of
from test_local_endpoints import eventually
from triton_server import needs_server

from constructs_triton_client import HttpTransport, TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

JSON, EVENTS, TEXT = "application/json", "text/event-stream; charset=utf-8", "text/plain"
KSERVE = {"inputs": [{"name": "text_input", "shape": [1], "datatype": "BYTES", "data": ["hi"]}]}
SEVERAL = (
    "generate expects model to produce exactly 1 response, use generate stream for model that "
    "generates various number of responses"
)
NOT_A_PARAMETER = "parameter '{}' has invalid type. It should be either 'int', 'bool', or 'string'."


#: The endpoint, the request, the status and the content type, and what arrives: all events, or a
#: part of the error's message. For a stream of events, a string is the message of the error in the
#: place of the first.
Case = tuple[str, Any, int, str, Any]


def event(text: str, ids: Any, seen: str = "None {}", **fields: Any) -> dict[str, Any]:
    """A response of the model ``tok``."""
    of_model = {"model_name": "tok", "model_version": "1"}
    return {"ids": ids, **of_model, "seen": seen, "text_output": text, **fields}


def upper(text: str, ids: Any, seen: str = "None {}") -> dict[str, Any]:
    """A response of the ensemble, to which Triton adds these parameters."""
    parameters = {"sequence_id": 0, "sequence_start": False, "sequence_end": False}
    return event(text, ids, seen, model_name="pipe", **parameters)


def streams(body: Any, *events: Any, endpoint: str = "stream") -> Case:
    return endpoint, body, 200, EVENTS, list(events)


def answers(body: Any, answer: Any, endpoint: str = "generate") -> Case:
    return endpoint, body, 200, JSON, [answer]


def refuses(body: Any, status: int, words: str, kind: str = JSON, endpoint: str = "stream") -> Case:
    return endpoint, body, status, kind, words


def seen_by(seen: str, **fields: Any) -> dict[str, Any]:
    """The only response to a request that the model sees so."""
    return event("hi0 ", [0, 0], seen, **fields)


HI = event("hi0 ", [0, 0])
ONE = {"text_input": "hi", "max_tokens": 1}
LATER = {"text_input": "fail later", "max_tokens": 5}
GIVEN = {"temperature": 0.5, "n": 3, "seed": "x", "flag": True}
SEEN = 'None {"id":"42","temperature":0.5,"n":3,"seed":"x","flag":true}'
BROKEN, SEVERAL_RESPONSES = {"error": "broke at 2"}, {"error": SEVERAL}
IN_ENSEMBLE = {"error": "in ensemble 'pipe', broke at 2"}
CASES: dict[str, Case] = {
    "several tokens": streams(
        {**ONE, "max_tokens": 4}, HI, event("hi1 ", 1), event("hi2 ", [2, 2]), event("hi3 ", 3)
    ),
    "id and parameters": streams({**ONE, "id": "42", "parameters": GIVEN}, seen_by(SEEN, id="42")),
    "an input among the parameters": streams(
        {"text_input": "hi", "parameters": {"max_tokens": 1}}, HI
    ),
    "unknown keys are parameters": streams(
        {**ONE, "temperature": 0.5}, seen_by('None {"temperature":0.5}')
    ),
    "list of one": streams({"text_input": ["hi"], "max_tokens": [1]}, HI),
    "two strings for one": refuses({"text_input": ["a", "b"]}, 400, "with proper shape"),
    "nested list": streams({"text_input": [["hi"]], "max_tokens": 1}, HI),
    "number for a string": refuses({"text_input": 7}, 500, "JSON non-string as string"),
    "string for a number": refuses({**ONE, "max_tokens": "4"}, 500, "non-signed-integer"),
    "float for an integer": refuses({**ONE, "max_tokens": 1.5}, 500, "non-signed-integer"),
    "overflow": streams({**ONE, "max_tokens": 2**32 + 1}, HI),
    "integers for floats": streams({**ONE, "bias": [1, 2]}, seen_by("(2,) {}")),
    "missing input": refuses({"max_tokens": 1}, 400, "'NoneType' object has no attribute", EVENTS),
    "null": refuses({**ONE, "x": None}, 400, NOT_A_PARAMETER.format("x")),
    "list as parameter": refuses({**ONE, "stop": ["a"]}, 400, NOT_A_PARAMETER.format("stop")),
    "parameters not an object": refuses({**ONE, "parameters": 3}, 500, "Expected JSON object"),
    "not JSON": refuses(b"text", 500, "failed to parse the request JSON buffer"),
    "empty body": refuses(b"", 500, "The document is empty"),
    "JSON array": refuses(b"[1]", 500, "attempt to get members for non-object"),
    "KServe body": refuses(KSERVE, 400, NOT_A_PARAMETER.format("inputs")),
    "reserved parameter": streams({**ONE, "triton_x": 1}, seen_by('None {"triton_x":1}')),
    "sequence_id": streams({**ONE, "sequence_id": 5}, seen_by('None {"sequence_id":5}')),
    "id not a string": refuses({**ONE, "id": 42}, 500, "Unable to parse 'id'"),
    "error in the first response": refuses({"text_input": "fail first"}, 400, "no first", EVENTS),
    "error later": streams(LATER, event("fail later0 ", [0, 0]), event("fail later1 ", 1), BROKEN),
    "no response": streams({**ONE, "max_tokens": 0}),
    "unicode": streams({"text_input": 'é\n"', "max_tokens": 1}, event('é\n"0 ', [0, 0])),
    "generate, one response": answers(ONE, HI),
    "generate, three responses": answers({"text_input": "hi"}, SEVERAL_RESPONSES),
    "generate, no response": answers({**ONE, "max_tokens": 0}, SEVERAL_RESPONSES),
    "generate, error in the first": refuses(
        {"text_input": "fail first"}, 400, "no first", JSON, "generate"
    ),
    "generate, error later": answers(LATER, SEVERAL_RESPONSES),
    "generate, ordinary model": answers({"text_input": "hi"}, event("hi once", [1, 2]), "plain"),
    "ordinary model": streams(
        {"text_input": "hi"}, event("hi once", [1, 2]), endpoint="plain-stream"
    ),
    "infer, decoupled": refuses(
        KSERVE, 501, "models with decoupled transaction policy", TEXT, "infer"
    ),
    "ensemble with a decoupled step": streams(
        {**ONE, "max_tokens": 2}, upper("HI0 ", [0, 0]), upper("HI1 ", 1), endpoint="ensemble"
    ),
    "ensemble, error later": streams(
        LATER,
        upper("FAIL LATER0 ", [0, 0]),
        upper("FAIL LATER1 ", 1),
        IN_ENSEMBLE,
        endpoint="ensemble",
    ),
    "batch of one with a variable dimension": streams(
        {**ONE, "bias": [1, 2.5, 3]}, upper("HI0 ", [0, 0], "(1, 3) {}"), endpoint="ensemble"
    ),
    "batch of two": streams(
        {"text_input": ["a", "b"], "max_tokens": [1, 1]}, upper("A0 ", [0, 0]), endpoint="ensemble"
    ),
}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """One run with an endpoint for each inference type and kind of model."""
    builder = AssemblyBuilder(tmp_path_factory.mktemp("streams") / "cdk.out")
    token = builder.asset("token", generating_model())
    plain = builder.asset("plain", generating_model(decoupled=False))
    pipe = builder.asset("pipe", generating_ensemble())
    for name, archive, model, inference_type in (
        ("stream", token, "tok", "generate_stream"),
        ("generate", token, "tok", "generate"),
        ("infer", token, "tok", "infer"),
        ("plain", plain, "tok", "generate"),
        ("plain-stream", plain, "tok", "generate_stream"),
        ("ensemble", pipe, "pipe", "generate_stream"),
    ):
        logical_id = name.replace("-", "")
        environment = {
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": model,
            "SAGEMAKER_TRITON_INFERENCE_TYPE": inference_type,
        }
        builder.single_model(f"{logical_id}Model", archive, environment)
        builder.endpoint(logical_id, {"AllTraffic": (f"{logical_id}Model", 1)}, name=name)
    with LocalEndpoint.from_assembly(builder.write()) as local:
        yield local


def collected(url: str, body: Any) -> tuple[int, str, bytes]:
    """The status of the container, its content type and the whole response of /invocations."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=20) as response:
            return response.status, response.headers["Content-Type"], response.read()
    except urllib.error.HTTPError as error:
        refused = json.load(error)
        content = refused["OriginalMessage"].encode()
        kind = EVENTS if content.startswith(b"data:") else JSON
        return refused["OriginalStatusCode"], kind, content


@pytest.mark.parametrize("name", CASES)
def test_answer_of_the_generate_extension(local: LocalEndpoint, name: str) -> None:
    """Status, content type and events of each kind of request, collected on /invocations."""
    endpoint, body, status, kind, expected = CASES[name]
    got = collected(f"{local.endpoint_url}/endpoints/{endpoint}/invocations", body)
    assert got[:2] == (status, JSON if kind == TEXT else kind)
    frames = got[2].decode().split("\n\n")[:-1] if kind == EVENTS else [got[2].decode()]
    found = [
        json.loads(frame.removeprefix("data: ") if kind == EVENTS else frame) for frame in frames
    ]
    if isinstance(expected, str):
        (refused,) = found
        assert expected in refused["error"]
    else:
        assert found == expected


def clients(local: LocalEndpoint, endpoint: str = "stream") -> list[TritonClient]:
    """A client over boto3, and one over plain HTTP."""
    url = local.endpoint_url
    return [
        TritonClient.for_endpoint(endpoint, endpoint_url=url),
        TritonClient(HttpTransport(f"{url}/endpoints/{endpoint}")),
    ]


def test_events_of_the_client(local: LocalEndpoint) -> None:
    """The same events over boto3 and HTTP, with for and async for,
    also of inference type generate.
    """

    async def texts(client: TritonClient) -> list[str]:
        return [each.text() async for each in client.infer_stream({"text_input": "hi"})]

    for client in clients(local):
        events = list(client.infer_stream({"text_input": "hi"}))
        assert [each.array("ids").tolist() for each in events] == [[0, 0], [1], [2, 2]]
        assert asyncio.run(texts(client)) == ["hi0 ", "hi1 ", "hi2 "]
        assert list(client.infer_stream({**ONE, "max_tokens": 0})) == []
    for client in clients(local, "generate"):
        assert [each.text() for each in client.infer_stream(ONE)] == ["hi0 "]


@pytest.mark.parametrize(
    ("endpoint", "text", "count", "message"),
    [
        ("stream", "fail first", 0, "got status 400: no first"),
        ("stream", "fail later", 2, "event 2: the model failed, got broke at 2"),
        ("generate", "hi", 0, "; set inference_type to generate_stream on the endpoint"),
        (
            "infer",
            "hi",
            0,
            "status 501: .*; set inference_type to generate_stream on the endpoint, and call",
        ),
    ],
)
def test_errors_of_the_client(
    local: LocalEndpoint, endpoint: str, text: str, count: int, message: str
) -> None:
    """An error before, in and in place of a stream is an InvocationError,
    after the events before it.
    """
    stream = clients(local, endpoint)[0].infer_stream({"text_input": text})
    assert len([next(stream) for _ in range(count)]) == count
    with pytest.raises(InvocationError, match=message):
        next(stream)


def cancellations(local: LocalEndpoint) -> int:
    """How often the model of the endpoint "stream" has seen that its caller left."""
    return log_of(local, "stream").read_text().count("CANCELLED at")


def leave(client: TritonClient) -> None:
    """Read one event of a stream of 1000 tokens, and close it."""
    with closing(client.infer_stream({"text_input": "leave", "max_tokens": 1000})) as stream:
        next(stream)


def leave_while_waiting(client: TritonClient) -> None:
    """Stop to wait for the second event."""

    async def scenario() -> None:
        stream = client.infer_stream({"text_input": "leave", "max_tokens": 1000})
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scenario())


def test_the_model_sees_that_a_caller_left(local: LocalEndpoint) -> None:
    """Events arrive while the model generates, and the end of the connection reaches it."""
    for client in clients(local):
        for action in (leave, leave_while_waiting):
            before = cancellations(local)
            action(client)
            assert eventually(lambda before=before: cancellations(local) == before + 1)  # type: ignore[misc]


def test_streams_need_no_port(local: LocalEndpoint) -> None:
    """The front end that generates is a socket in the server's private folder."""
    port = int(local.endpoint_url.rpartition(":")[2])
    assert listening(processes_of(local)) == {("127.0.0.1", port)}
    for folder in folders(local):
        assert folder.stat().st_mode & 0o077 == 0
        assert (folder / "http.sock").is_socket()


def test_what_cannot_stream_is_reported_at_the_start(local: LocalEndpoint) -> None:
    """A decoupled model with inference type infer is named before a request;
    no other endpoint is.
    """
    (line,) = local.messages.splitlines()
    assert line.startswith(
        "infer/AllTraffic: the model is decoupled, so every request gets status 501, on"
    )
