"""The transports over real sockets: real boto3 and urllib3 against a scripted server on loopback."""

from __future__ import annotations

import json
import threading
from binascii import crc32
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import numpy as np
import pytest

from constructs_triton.client import (
    EndpointThrottledError,
    HttpTransport,
    ModelNotReadyError,
    ModelOutOfMemoryError,
    SageMakerTransport,
    TritonClient,
    default_config,
)
from constructs_triton.errors import InvalidValueError, InvocationError
from constructs_triton.wire import decode_request, encode_response

INPUTS = {"X": np.arange(3, dtype="f4")}


@dataclass
class Exchange:
    """One request as the server saw it."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """What the server says, once."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None


@dataclass
class Server:
    """A loopback server that gives its answers in order, the last one for ever."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)

    def next_answer(self, exchange: Exchange) -> Answer:
        self.exchanges.append(exchange)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def server() -> Iterator[Server]:
    """A scripted server, stopped after the test."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            answer = script.next_answer(Exchange(self.path, dict(self.headers), body))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header(
                "Content-Length", str(len(answer.body) if answer.length is None else answer.length)
            )
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    script = Server(f"http://127.0.0.1:{httpd.server_address[1]}")
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield script
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def fine() -> Answer:
    """A binary response of one output."""
    response = encode_response({"Y": np.array([1.5], dtype="f4")}, model_name="m", model_version="3")
    return Answer(200, response.body, {"Content-Type": response.content_type, "x-amzn-RequestId": "r-1"})


def failure(code: str, status: int, **members: Any) -> Answer:
    """A refusal as SageMaker words it."""
    return Answer(
        status,
        json.dumps({"Message": "no", **members}).encode(),
        {"x-amzn-errortype": code, "Content-Type": "application/json", "x-amzn-RequestId": "r-9"},
    )


def for_sagemaker(url: str, **options: Any) -> TritonClient:
    session = boto3.Session("akid", "secret", region_name="eu-central-1")
    return TritonClient.for_endpoint("demo", session=session, endpoint_url=url, **options)


def test_sagemaker_carries_the_body_and_invoke_options(server: Server) -> None:
    """InvokeEndpoint gets our bytes, content type and the caller's options, and its answer is decoded."""
    server.answers = [fine()]
    result = for_sagemaker(server.url, target_model="a.tar.gz").infer(INPUTS, ["Y"], InferenceId="i-1")
    assert result["Y"].tolist() == [1.5]
    assert result.metadata["RequestId"] == "r-1"
    assert result.latency_seconds is not None
    (exchange,) = server.exchanges
    assert exchange.path == "/endpoints/demo/invocations"
    assert exchange.headers["X-Amzn-SageMaker-Target-Model"] == "a.tar.gz"
    assert exchange.headers["X-Amzn-SageMaker-Inference-Id"] == "i-1"
    sent = decode_request(exchange.body, exchange.headers["Content-Type"])
    assert sent.inputs["X"].tolist() == [0, 1, 2]


def test_loopback_needs_neither_region_nor_credentials(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local run is called from a machine that never heard of AWS, and gets the request unsigned."""
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    server.answers = [fine()]
    TritonClient.for_endpoint("demo", endpoint_url=server.url).infer(INPUTS)
    assert "Authorization" not in server.exchanges[0].headers


def test_missing_region_is_named_with_its_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Region the error says how to give one."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(InvocationError, match=r"NoRegionError.*give region_name"):
        TritonClient.for_endpoint("demo").infer(INPUTS)


def test_profile_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell whose AWS_PROFILE is stale gets an error of ours, with where to look."""
    monkeypatch.setenv("AWS_PROFILE", "absent")
    with pytest.raises(InvocationError, match=r"ProfileNotFound.*\(absent\).*see AWS_PROFILE"):
        TritonClient.for_endpoint("demo").infer(INPUTS)


def test_address_without_its_scheme_is_refused_at_once() -> None:
    """botocore would say so at the first call only, and with an error of Python's own."""
    with pytest.raises(InvalidValueError, match=r"endpoint_url: must start with http://"):
        TritonClient.for_endpoint("demo", endpoint_url="127.0.0.1:8080")


def test_model_that_is_not_ready_is_asked_again(server: Server) -> None:
    """ModelNotReadyException is retried by botocore until the model is there."""
    server.answers = [failure("ModelNotReadyException", 429), fine()]
    assert for_sagemaker(server.url).infer(INPUTS).metadata["RetryAttempts"] == 1


@pytest.mark.parametrize(
    ("answer", "kind", "status"),
    [
        (failure("ModelNotReadyException", 429), ModelNotReadyError, 429),
        (failure("ThrottlingException", 400), EndpointThrottledError, 400),
        (
            failure("ModelError", 424, OriginalStatusCode=507, OriginalMessage='{"error":"out of memory"}'),
            ModelOutOfMemoryError,
            507,
        ),
        (
            failure("ModelError", 424, OriginalStatusCode=400, OriginalMessage='{"error":"out of memory"}'),
            InvocationError,
            400,
        ),
    ],
)
def test_refusals_are_told_apart(server: Server, answer: Answer, kind: type, status: int) -> None:
    """Not ready, throttled, out of memory and wrong requests are errors of their own, with status and id."""
    server.answers = [answer]
    client = for_sagemaker(server.url, config=default_config(max_attempts=1))
    with pytest.raises(InvocationError) as caught:
        client.infer(INPUTS)
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.request_id) == (status, "r-9")
    assert caught.value.model_message == (
        "out of memory" if status in (507, 400) and answer.status == 424 else "no"
    )


def test_unknown_invoke_option_is_refused_before_sending(server: Server) -> None:
    """An option that InvokeEndpoint lacks is an error of ours, not botocore's."""
    with pytest.raises(InvalidValueError, match="Colour"):
        for_sagemaker(server.url).infer(INPUTS, Colour="red")
    assert server.exchanges == []


@pytest.mark.parametrize("connect", [for_sagemaker, lambda url, **_: TritonClient(HttpTransport(url))])
def test_refused_connection_is_an_invocation_error(connect: Callable[..., TritonClient]) -> None:
    """A port without a server gives an error of ours over either transport."""
    with pytest.raises(InvocationError, match=r"the request failed.*something listens at this address"):
        connect("http://127.0.0.1:9", config=default_config(max_attempts=1)).infer(INPUTS)


@pytest.mark.parametrize("connect", [for_sagemaker, lambda url, **_: TritonClient(HttpTransport(url))])
def test_answer_cut_off_by_the_network_is_an_invocation_error(
    server: Server, connect: Callable[..., TritonClient]
) -> None:
    """A body shorter than its Content-Length is not decoded."""
    cut = fine()
    cut.length, cut.headers["Connection"] = len(cut.body) + 5, "close"
    server.answers = [cut]
    with pytest.raises(InvocationError):
        connect(server.url, config=default_config(max_attempts=1)).infer(INPUTS)


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One message of AWS's event stream encoding: prelude, headers, payload, two checksums."""
    encoded = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
        for name, value in headers.items()
    )
    prelude = (16 + len(encoded) + len(payload)).to_bytes(4, "big") + len(encoded).to_bytes(4, "big")
    message = prelude + crc32(prelude).to_bytes(4, "big") + encoded + payload
    return message + crc32(message).to_bytes(4, "big")


def part(payload: bytes) -> bytes:
    return frame({":event-type": "PayloadPart", ":message-type": "event"}, payload)


EVENTS = 'data: {"text_output":"grüß"}\r\n\r\ndata: {"text_output":" dich"}\n\n'.encode()


def test_stream_is_reassembled_from_every_cut(server: Server) -> None:
    """Whatever byte SageMaker's parts are cut at, boto3's event stream gives the same answers."""
    client = for_sagemaker(server.url)
    for cut in range(1, len(EVENTS)):
        frames = part(EVENTS[:cut]) + part(EVENTS[cut:])
        server.answers = [Answer(200, frames, {"Content-Type": "application/vnd.amazon.eventstream"})]
        answers = list(client.infer_stream({"text_input": "hello", "stream": True}))
        assert [answer["text_output"] for answer in answers] == ["grüß", " dich"]
    assert json.loads(server.exchanges[0].body) == {"text_input": "hello", "stream": True}
    assert server.exchanges[0].path == "/endpoints/demo/invocations-response-stream"


def test_stream_that_breaks_off_is_an_invocation_error(server: Server) -> None:
    """A ModelStreamError within the stream comes after the answers before it."""
    broken = frame(
        {":exception-type": "ModelStreamError", ":message-type": "exception"}, b'{"Message":"gone"}'
    )
    server.answers = [
        Answer(200, part(EVENTS) + broken, {"Content-Type": "application/vnd.amazon.eventstream"})
    ]
    answers = for_sagemaker(server.url).infer_stream({"text_input": "hello"})
    assert [next(answers)["text_output"], next(answers)["text_output"]] == ["grüß", " dich"]
    with pytest.raises(InvocationError, match="gone"):
        next(answers)


def test_http_speaks_the_containers_contract(server: Server) -> None:
    """Plain HTTP goes to /invocations, a target model to its own path with the header, on one connection."""
    server.answers = [fine()]
    client = TritonClient(HttpTransport(server.url))
    assert client.infer(INPUTS)["Y"].tolist() == [1.5]
    client.infer(INPUTS, TargetModel="a b.tar.gz")
    assert [exchange.path for exchange in server.exchanges] == ["/invocations", "/models/a%20b.tar.gz/invoke"]
    assert server.exchanges[1].headers["X-Amzn-SageMaker-Target-Model"] == "a b.tar.gz"


def test_http_failure_carries_status_and_tritons_words(server: Server) -> None:
    """A container's error body becomes the message of the error."""
    server.answers = [Answer(507, b'{"error":"no space left"}')]
    with pytest.raises(ModelOutOfMemoryError, match="no space left") as caught:
        TritonClient(HttpTransport(server.url)).infer(INPUTS)
    assert caught.value.status == 507


def test_http_streams_events(server: Server) -> None:
    """A generating container's events arrive over plain HTTP too."""
    server.answers = [Answer(200, EVENTS, {"Content-Type": "text/event-stream"})]
    assert len(list(TritonClient(HttpTransport(server.url)).infer_stream({"text_input": "x"}))) == 2


def test_http_refuses_a_promised_flood_before_reading(server: Server) -> None:
    """A Content-Length of 10 GB is refused on the header alone."""
    server.answers = [
        Answer(200, b"x", {"Content-Type": "application/json", "Connection": "close"}, 10 * 10**9)
    ]
    with pytest.raises(InvocationError, match="10000000000"):
        TritonClient(HttpTransport(server.url)).infer(INPUTS)


def test_default_configuration_outlasts_the_containers_minute() -> None:
    """Reads wait 70 s, since a container may take 60 s to answer."""
    config: Any = default_config()  # the stubs of botocore do not list its options
    assert config.read_timeout == 70
    assert config.retries["total_max_attempts"] == 4


def test_nothing_is_connected_before_the_first_call() -> None:
    """Making a transport neither needs credentials nor a Region."""
    assert SageMakerTransport("demo").endpoint_name == "demo"
