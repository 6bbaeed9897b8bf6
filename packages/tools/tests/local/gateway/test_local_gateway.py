"""SageMaker's runtime API, with web servers in place of the Triton servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import boto3
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from botocore.eventstream import EventStreamBuffer
from botocore.exceptions import ClientError
from fake_container import (
    Answer,
    FakeLoader,
    connected,
    endpoint_of,
    fake_server,
    in_loop,
    running_container,
    running_server,
)

from constructs_triton_tools.local.gateway import gateway
from constructs_triton_tools.local.gateway.gateway import gateway_application
from constructs_triton_tools.local.gateway.gateway_port import listen
from constructs_triton_tools.local.gateway.inference_components import LocalVariant
from constructs_triton_tools.local.gateway.listener import serving as listener_serving
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.http_session import open_session
from constructs_triton_tools.local.server.server import TritonServer
from constructs_triton_tools.local.sources.specs import (
    AsyncInferenceSpec,
    ContainerSpec,
    EndpointSpec,
    VariantSpec,
)

CONTAINER = ContainerSpec("m", "", "s3://bucket/models/", archive=Path("m.tar.gz"))
INVOCATIONS = "/endpoints/e/invocations"
STREAM = f"{INVOCATIONS}-response-stream"
ASYNC = "/endpoints/e/async-invocations"
PREFIX = "X-Amzn-SageMaker-"
# A string: aiohttp before 3.11 has no generic class.
Application: TypeAlias = "TestClient[web.Request, web.Application]"


@dataclass
class Run:
    """A gateway's client, and what the run reported."""

    client: Application
    server: TritonServer
    messages: list[str] = field(default_factory=list)

    async def invoke(
        self, path: str = INVOCATIONS, data: Any = b"x", **headers: str
    ) -> tuple[int, Any]:
        """Status and the decoded JSON, or the bytes, of a response."""
        named = {f"{PREFIX}{name.replace('_', '-')}": value for name, value in headers.items()}
        response = await self.client.post(path, data=data, headers=named)
        content = await response.read()
        is_json = response.content_type == "application/json"
        return response.status, json.loads(content) if is_json else content

    async def message(self, path: str = INVOCATIONS, **headers: str) -> str:
        """The message of a ValidationError."""
        status, body = await self.invoke(path, **headers)
        assert status == 400
        return str(body["Message"])


@asynccontextmanager
async def running(
    folder: Path,
    answer: Answer,
    *,
    weights: Mapping[str, float] | None = None,
    shadow: Answer | None = None,
    timeout_seconds: float = 5.0,
    asynchronous: AsyncInferenceSpec | None = None,
    bucket_folder: Path | None = None,
) -> AsyncIterator[Run]:
    """A gateway whose endpoint "e" has variants that are all served by ``answer``."""
    messages: list[str] = []
    weight_of = weights or {"A": 1.0}
    production = tuple(VariantSpec(name, CONTAINER, weight) for name, weight in weight_of.items())
    shadows = (VariantSpec("S", CONTAINER),) if shadow else ()
    spec = EndpointSpec("e", "s", production, shadows, asynchronous=asynchronous)

    server = fake_server(folder, messages, timeout_seconds=timeout_seconds)
    shadow_server = fake_server(folder, messages, timeout_seconds=timeout_seconds)
    async with (
        running_server(answer) as port,
        running_server(shadow or answer) as shadow_port,
        connected(server, port),
        connected(shadow_server, shadow_port),
    ):
        variants = [LocalVariant(variant, server, None) for variant in production]
        variants += [LocalVariant(variant, shadow_server, None) for variant in shadows]
        endpoints = {"e": RunningEndpoint(spec, variants)}
        async with serving(endpoints, bucket_folder) as client:
            yield Run(client, server, messages)


@asynccontextmanager
async def serving(
    endpoints: Mapping[str, RunningEndpoint], bucket_folder: Path | None
) -> AsyncIterator[Application]:
    """A client of the gateway of these endpoints."""
    application = gateway_application(endpoints, bucket_folder)
    async with TestClient(TestServer(application, shutdown_timeout=0.1)) as client:
        yield client


async def echo(request: web.Request) -> web.StreamResponse:
    """Answers with the request: its path, headers and body."""
    seen = {
        "path": request.path,
        "headers": dict(request.headers),
        "body": (await request.read()).decode(),
    }
    return web.json_response(seen, headers={f"{PREFIX}Custom-Attributes": "c", "X-Other": "o"})


def failing(status: int, text: str) -> Answer:
    """Answers with this status and text, whatever the request is."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(status=status, text=text)

    return answer


async def die_before_answering(request: web.Request) -> web.StreamResponse:
    """Reads the request and closes the connection."""
    await request.read()
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def dying_while_answering(pieces: Iterable[bytes], length: int | None) -> Answer:
    """Sends a part of the response and then closes the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse()
        response.content_length = length
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        assert request.transport is not None
        await asyncio.sleep(0.05)
        request.transport.abort()
        return response

    return answer


async def hang(request: web.Request) -> web.StreamResponse:
    await request.read()
    await asyncio.sleep(30)
    return web.Response()


async def hang_while_answering(request: web.Request) -> web.StreamResponse:
    """Sends the first part of a response, and then nothing."""
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"first")
    await asyncio.sleep(30)
    return response


@in_loop
async def test_body_and_sagemaker_headers_reach_the_container(tmp_path: Path) -> None:
    """Content type, Accept and SageMaker's headers are passed on; signatures and others are not."""
    passed_on = {
        "Content-Type": "text/csv",
        "Accept": "text/plain",
        f"{PREFIX}Inference-Id": "i",
    }
    async with running(tmp_path, echo) as run:
        response = await run.client.post(
            INVOCATIONS, data=b"1,2", headers={**passed_on, "Authorization": "secret"}
        )

        seen = await response.json()
        assert (response.status, seen["path"], seen["body"]) == (200, "/invocations", "1,2")
        assert "Authorization" not in seen["headers"]
        assert passed_on.items() <= seen["headers"].items()
        assert response.headers["x-Amzn-Invoked-Production-Variant"] == "A"
        assert response.headers[f"{PREFIX}Custom-Attributes"] == "c"
        assert response.headers["x-amzn-RequestId"]
        assert "X-Other" not in response.headers


@in_loop
async def test_a_cookie_of_a_container_is_not_sent_with_the_next_request() -> None:
    """The requests of different callers share a session, so it must not remember anything."""

    async def answer(request: web.Request) -> web.Response:
        response = web.json_response(dict(request.cookies))
        response.set_cookie("session", "of another caller")
        return response

    async with running_server(answer) as port, open_session(aiohttp.TCPConnector(), 5.0) as session:
        for _ in range(2):
            async with session.get(f"http://localhost:{port}") as response:
                assert await response.json() == {}


@in_loop
async def test_wrong_names_list_those_that_exist(tmp_path: Path) -> None:
    """An unknown endpoint and an unknown variant; TargetModel on an endpoint of one model."""
    async with running(tmp_path, echo, weights={"A": 1.0, "B": 0.0}) as run:
        message = await run.message("/endpoints/x/invocations")
        assert message == (
            "Endpoint x of account 123456789012 not found. Endpoints of this local run: e"
        )
        message = await run.message(Target_Variant="C")
        assert message == "Variant C not found for endpoint e. Its variants: A, B"
        assert "leave it out" in await run.message(Target_Model="m.tar.gz")
        assert "not an asynchronous endpoint; call invoke_endpoint" in await run.message(ASYNC)


@in_loop
async def test_a_missing_target_model_lists_the_archives(tmp_path: Path) -> None:
    """A multi-model endpoint without TargetModel; with it, the model's own path is called."""
    server = fake_server(tmp_path)
    loader = FakeLoader(200)
    async with running_container(server, loader) as container:
        endpoint = endpoint_of(server, server.container, container)
        async with serving({"e": endpoint}, None) as client:
            run = Run(client, server)
            assert (await run.message()).endswith('Its archives: "a.tar.gz" and "b.tar.gz"')
            response = await client.post(
                INVOCATIONS, json={"url": "u"}, headers={f"{PREFIX}Target-Model": "a.tar.gz"}
            )
            assert (response.status, loader.calls) == (200, ["POST a.tar.gz", "POST a.tar.gz"])


@in_loop
async def test_a_container_that_starts_is_unavailable(tmp_path: Path) -> None:
    """503 until the server is ready, for callers and for /ping."""
    async with running(tmp_path, echo) as run:
        assert (await run.client.get("/ping")).status == 200
        run.server.is_ready = False
        assert (await run.client.get("/ping")).status == 503
        status, body = await run.invoke()
        assert status == 503
        assert body["Message"] == "The container of variant A is starting; please try again"


@pytest.mark.parametrize(
    ("answer", "path", "status", "message"),
    [
        (die_before_answering, INVOCATIONS, 500, "The container closed the connection"),
        (die_before_answering, STREAM, 500, "The container closed the connection"),
        # A small answer is received before it is passed on, so the caller has no status yet.
        (
            dying_while_answering([b"part"], 10),
            INVOCATIONS,
            500,
            "The container closed the connection",
        ),
        (hang, INVOCATIONS, 0, "Your invocation timed out"),
    ],
)
@in_loop
async def test_a_server_that_dies_or_hangs_is_a_model_error(
    tmp_path: Path, answer: Answer, path: str, status: int, message: str
) -> None:
    """424 with the original status, which is 0 after SageMaker's 60 seconds;
    the next request is served.
    """
    timeout_seconds = 0.1 if answer is hang else 5.0
    async with running(tmp_path, answer, timeout_seconds=timeout_seconds) as run:
        answered, body = await run.invoke(path, b"x" * 1_000_000)
        assert (answered, body["OriginalStatusCode"]) == (424, status)
        assert body["OriginalMessage"].startswith(message)
        assert (await run.client.get("/ping")).status == 200


@pytest.mark.parametrize("length", [1_000_000, None])
@in_loop
async def test_a_server_that_dies_while_it_answers_breaks_the_connection(
    tmp_path: Path, length: int | None
) -> None:
    """The caller has status 200 already: only a broken connection shows that
    the body is incomplete.
    """
    async with running(tmp_path, dying_while_answering([b"part"], length)) as run:
        with pytest.raises(aiohttp.ClientError):
            await run.invoke()


@pytest.mark.parametrize(
    ("answer", "timeout_seconds", "sent", "code"),
    [
        (dying_while_answering([b"one", b"two"], None), 5.0, b"onetwo", "StreamBroken"),
        # The limit of a stream is eight times that of a response, as on SageMaker.
        (hang_while_answering, 0.05, b"first", "ModelInvocationTimeExceeded"),
    ],
)
@in_loop
async def test_a_broken_stream_ends_with_an_error(
    tmp_path: Path, answer: Answer, timeout_seconds: float, sent: bytes, code: str
) -> None:
    """The parts that were sent arrive, then a ModelStreamError whose code has the reason."""
    async with running(tmp_path, answer, timeout_seconds=timeout_seconds) as run:
        status, content = await run.invoke(STREAM)
        *parts, (name, payload) = _events(content)
        assert (status, {kind for kind, _ in parts}) == (200, {"PayloadPart"})
        assert b"".join(part for _, part in parts) == sent
        assert (name, json.loads(payload)["ErrorCode"]) == ("ModelStreamError", code)


@in_loop
async def test_a_caller_that_leaves_ends_the_request_before_the_first_byte(tmp_path: Path) -> None:
    """The container's connection closes although it has not answered, and nothing is reported."""
    has_request = asyncio.Event()
    is_left = asyncio.Event()
    messages: list[str] = []

    async def wait(request: web.Request) -> web.StreamResponse:
        await request.read()
        has_request.set()
        try:
            await asyncio.sleep(30)
        finally:  # aiohttp's test server cancels it when the connection closes
            is_left.set()
        return web.Response()

    server = fake_server(tmp_path, timeout_seconds=5.0)
    endpoint = endpoint_of(server, CONTAINER)
    with listen(0) as listener:
        async with (
            running_server(wait) as port,
            connected(server, port),
            listener_serving(gateway_application({"e": endpoint}), listener, messages.append),
        ):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            head = f"POST {STREAM} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"
            writer.write(head.encode() + b"x")
            await has_request.wait()
            assert not is_left.is_set()

            writer.close()

            await is_left.wait()
    assert messages == []


def _events(content: bytes) -> list[tuple[str, bytes]]:
    """The name and the payload of each event of a stream; an exception is an event too."""
    buffer = EventStreamBuffer()
    buffer.add_data(content)
    found = []
    for event in buffer:
        headers = event.to_response_dict()["headers"]
        name = headers.get(":event-type") or headers[":exception-type"]
        found.append((name, event.payload))
    return found


@in_loop
async def test_a_complete_stream_has_the_containers_content_type(tmp_path: Path) -> None:
    """The response's own type is the event stream; the container's is in a header."""
    async with running(tmp_path, failing(200, "all")) as run:
        response = await run.client.post(STREAM, data=b"x")
        assert response.headers["Content-Type"] == "application/vnd.amazon.eventstream"
        assert response.headers["X-Amzn-SageMaker-Content-Type"] == "text/plain; charset=utf-8"
        assert _events(await response.read()) == [("PayloadPart", b"all")]


@pytest.mark.parametrize(("status", "side"), [(400, "client"), (499, "client"), (500, "server")])
@in_loop
async def test_an_error_of_the_container_is_a_model_error(
    tmp_path: Path, status: int, side: str
) -> None:
    """Its status and message, and the log group of the endpoint."""
    async with running(tmp_path, failing(status, "bad shape")) as run:
        answered, body = await run.invoke()
        assert (answered, body["OriginalStatusCode"], body["OriginalMessage"]) == (
            424,
            status,
            "bad shape",
        )
        assert (
            f'Received {side} error ({status}) from primary with message "bad shape"'
            in body["Message"]
        )
        assert body["LogStreamArn"] == (
            "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/Endpoints/e"
        )


@in_loop
async def test_a_model_that_ended_is_explained_once(tmp_path: Path) -> None:
    """The run reports what the server's message means; other errors report nothing."""
    async with running(tmp_path, failing(500, "Stub process 'm' is not healthy.")) as run:
        await run.invoke()
        await run.invoke()
        (message,) = run.messages
        assert message.startswith(
            "e/v: the process of a Python model ended. If native code crashed"
        )
    async with running(tmp_path, failing(500, "other")) as run:
        await run.invoke()
        assert run.messages == []


@in_loop
async def test_bodies_above_the_limit_never_reach_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """413, with the limit; a body of exactly the limit is passed on."""
    monkeypatch.setattr("constructs_triton_tools.local.gateway.relay.INVOCATION_PAYLOAD_BYTES", 10)
    monkeypatch.setattr(gateway, "INVOCATION_PAYLOAD_BYTES", 10)
    async with running(tmp_path, echo) as run:
        status, body = await run.invoke(data=b"x" * 11)
        assert (status, body["Message"]) == (413, "HTTP content length exceeded 10 bytes.")
        status, body = await run.invoke(data=b"x" * 10)
        assert (status, body["body"]) == (200, "x" * 10)


@in_loop
async def test_variants_are_chosen_by_weight_or_by_name(tmp_path: Path) -> None:
    """Weights 3 and 1, and TargetVariant, also for a variant of weight 0."""
    async with running(tmp_path, echo, weights={"A": 3.0, "B": 1.0, "C": 0.0}) as run:
        names = [await _variant_of(run) for _ in range(8)]
        assert (names.count("A"), names.count("B")) == (6, 2)
        assert await _variant_of(run, "C") == "C"


async def _variant_of(run: Run, wanted: str | None = None) -> str:
    """The variant that answers a request, with TargetVariant if one is wanted."""
    headers = {f"{PREFIX}Target-Variant": wanted} if wanted else {}
    response = await run.client.post(INVOCATIONS, data=b"x", headers=headers)
    return response.headers["x-Amzn-Invoked-Production-Variant"]


@in_loop
async def test_a_shadow_variant_receives_a_copy_and_its_failure_is_reported(tmp_path: Path) -> None:
    """Callers see production's response only."""
    seen: list[bytes] = []

    async def shadow(request: web.Request) -> web.StreamResponse:
        seen.append(await request.read())
        return web.Response(status=400, text="not for me")

    async with running(tmp_path, echo, shadow=shadow) as run:
        status, body = await run.invoke(data=b"copy me")
        assert (status, body["body"]) == (200, "copy me")
        while not run.messages:
            await asyncio.sleep(0.01)
        assert seen == [b"copy me"]
        assert "the shadow variant failed" in run.messages[0]
        assert "not for me" in run.messages[0]


@in_loop
async def test_an_asynchronous_endpoint_needs_a_folder_and_its_own_call(tmp_path: Path) -> None:
    """Without --bucket-folder the call is rejected, and so is invoke_endpoint."""
    output = AsyncInferenceSpec("s3://out/good")
    async with running(tmp_path, echo, asynchronous=output) as run:
        assert "start the local run with --bucket-folder DIR" in await run.message(ASYNC)
        assert "call invoke_endpoint_async" in await run.message()


@pytest.mark.parametrize(
    ("answer", "header", "written"),
    [
        (echo, "OutputLocation", "body"),
        (failing(500, "broken"), "FailureLocation", "broken"),
    ],
)
@in_loop
async def test_an_asynchronous_request_writes_the_containers_response(
    tmp_path: Path, answer: Answer, header: str, written: str
) -> None:
    """202 with the location, and then a file below the folder;
    a failure is written to its own path.
    """
    output = AsyncInferenceSpec("s3://out/good", "s3://out/bad")
    async with running(tmp_path, answer, asynchronous=output, bucket_folder=tmp_path) as run:
        response = await run.client.post(ASYNC, data=b"body")

        assert response.status == 202
        file = tmp_path / response.headers[f"{PREFIX}{header}"].removeprefix("s3://")
        while not file.exists():
            await asyncio.sleep(0.01)
        assert written in file.read_text()


@in_loop
async def test_freed_memory_is_kept_from_the_first_request_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway asks for it when it is created."""
    asked: list[bool] = []
    monkeypatch.setattr(gateway, "keep_freed_memory", lambda: asked.append(True))
    async with running(tmp_path, echo):
        assert asked == [True]


@in_loop
async def test_call_of_another_service_says_that_this_is_a_local_run(tmp_path: Path) -> None:
    """AWS_ENDPOINT_URL sends all services here: boto3 raises an error that names the command."""
    async with running(tmp_path, echo) as run:
        address = str(run.client.make_url("")).rstrip("/")

        def call(service: str, operation: str, **members: Any) -> str:
            client = boto3.client(
                service,
                endpoint_url=address,
                region_name="us-east-1",
                aws_access_key_id="local",
                aws_secret_access_key="local",
            )
            with pytest.raises(ClientError) as raised:
                getattr(client, operation)(**members)
            return str(raised.value)

        for service, operation, members in (
            ("sagemaker", "describe_endpoint", {"EndpointName": "e"}),
            ("cloudformation", "describe_stacks", {}),
        ):
            said = await asyncio.to_thread(call, service, operation, **members)
            assert "this is a local run" in said
            assert "constructs-triton local status" in said
