"""Requests that the gateway rejects, and bodies that it passes unchanged."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest
from aiohttp import web
from fake_container import (
    FakeLoader,
    connected,
    endpoint_of,
    fake_server,
    in_loop,
    running_container,
    running_server,
)
from test_local_gateway import (
    ASYNC,
    CONTAINER,
    INVOCATIONS,
    PREFIX,
    STREAM,
    Run,
    echo,
    running,
    serving,
)

from constructs_triton_tools.local.gateway.gateway import gateway_application
from constructs_triton_tools.local.gateway.gateway_port import listen
from constructs_triton_tools.local.gateway.listener import serving as serving_gateway
from constructs_triton_tools.local.sources.specs import AsyncInferenceSpec

TARGET_MODEL = f"{PREFIX}Target-Model"
PATTERN = r"satisfy regular expression pattern: \A\S[\p{Print}]*\z"


@pytest.mark.parametrize("path", [INVOCATIONS, STREAM, ASYNC, "/ping", "/unknown"])
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Host", "evil.example.com"),
        ("Host", "evil.example.com:8080"),
        ("Host", "localhost.example.com"),
        ("Host", "192.168.0.7:8080"),
        ("Host", ""),
        ("Origin", "https://evil.example.com"),
        ("Origin", "http://localhost.example.com:8080"),
        ("Origin", "null"),
        ("Origin", ""),
    ],
)
@in_loop
async def test_a_foreign_host_or_origin_is_refused(
    tmp_path: Path, path: str, header: str, value: str
) -> None:
    """403 in the form of the API's errors, on every path; nothing reaches the container."""
    async with running(tmp_path, echo) as run:
        response = await run.client.post(path, data=b"x", headers={header: value})
        message = (await response.json())["Message"]
        assert (response.status, response.headers["x-amzn-errortype"]) == (
            403,
            "AccessDeniedException",
        )
        assert message.startswith(
            f"{header}: must be 127.0.0.1, localhost or [::1], got {value!r}; "
        )


@pytest.mark.parametrize(
    ("header", "value"),
    [
        *(("Host", value) for value in ("127.0.0.1", "LOCALHOST:65535", "[::1]:8080")),
        *(("Origin", value) for value in ("http://localhost:3000", "https://[::1]")),
    ],
)
@in_loop
async def test_hosts_and_origins_of_loopback_are_served(
    tmp_path: Path, header: str, value: str
) -> None:
    """With any port, and in any case of letters."""
    async with running(tmp_path, echo) as run:
        assert (
            await run.client.post(INVOCATIONS, data=b"x", headers={header: value})
        ).status == 200


@pytest.mark.parametrize(
    ("target_model", "constraint"),
    [
        ("a" * 1025, "have length less than or equal to 1024"),
        ("", "have length greater than or equal to 1"),
        ("a\tb", PATTERN),
        ("\u00e9.tar.gz", PATTERN),
    ],
    ids=["long", "empty", "tab", "not-ascii"],
)
@in_loop
async def test_an_impossible_target_model_is_a_validation_error(
    tmp_path: Path, target_model: str, constraint: str
) -> None:
    """The words of the API's own validation; the container is not asked."""
    server, loader = fake_server(tmp_path), FakeLoader(200)
    async with (
        running_container(server, loader) as container,
        serving({"e": endpoint_of(server, server.container, container)}, None) as client,
    ):
        message = await Run(client, server).message(Target_Model=target_model)
        assert message.startswith("1 validation error detected: Value ")
        assert message.endswith(f"constraint: Member must {constraint}")
        assert loader.calls == []


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            {"Inference_Id": "i" * 65},
            "at 'inferenceId' {}: Member must have length less than or equal to 64",
        ),
        (
            {"Enable_Explanations": ""},
            "at 'enableExplanations' {}: Member must have length greater than or",
        ),
        (
            {"Session_Id": "not a session"},
            "at 'sessionId' {}: Member must satisfy regular expression",
        ),
        (
            {"Custom_Attributes": "secret" * 200},
            "validation error detected: Value at 'customAttributes' {}",
        ),
        ({"Inference_Id": " ", "Session_Id": "-"}, "2 validation errors detected: "),
    ],
)
@in_loop
async def test_headers_have_the_limits_of_the_api(
    tmp_path: Path, headers: dict[str, str], message: str
) -> None:
    """Those of botocore's service model; a sensitive value is not repeated,
    and a session may be new.
    """
    async with running(tmp_path, echo) as run:
        assert message.format("failed to satisfy constraint") in await run.message(**headers)
        assert "'a b' at 'sessionId'" in await run.message(STREAM, Session_Id="a b")
        assert (await run.invoke(Session_Id="NEW_SESSION"))[0] == 200


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\xc3\xa9", b"a\xffb"])
@in_loop
async def test_bytes_that_are_not_text_in_a_header_are_a_validation_error(
    tmp_path: Path, raw: bytes
) -> None:
    """A header that does not decode is answered, not a traceback."""
    server = fake_server(tmp_path)
    async with (
        running_container(server, FakeLoader(200)) as container,
        serving({"e": endpoint_of(server, server.container, container)}, None) as client,
    ):
        reader, writer = await asyncio.open_connection(client.host, client.port)
        head = (
            f"POST {INVOCATIONS} HTTP/1.1\r\nHost: localhost\r\nConnection: "
            f"close\r\n{TARGET_MODEL}: "
        )
        writer.write(head.encode() + raw + b"\r\nContent-Length: 1\r\n\r\nx")
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"ValidationError" in answer


@pytest.mark.parametrize("seconds", ["9" * 5000, "-1", "1.5", "0", "3601"])
@in_loop
async def test_an_impossible_number_of_seconds_is_a_validation_error(
    tmp_path: Path, seconds: str
) -> None:
    """A number of thousands of digits too."""
    folder = tmp_path / "s3"
    async with running(
        tmp_path, echo, asynchronous=AsyncInferenceSpec("s3://b/out"), bucket_folder=folder
    ) as run:
        message = await run.message(ASYNC, InvocationTimeoutSeconds=seconds)
        assert (
            "at 'invocationTimeoutSeconds' failed to satisfy constraint: Member must have value"
            in message
        )


async def received(request: web.Request) -> web.StreamResponse:
    """Answers with the bytes of the body, and with its encoding."""
    return web.json_response(
        [(await request.read()).hex(), request.headers.get("Content-Encoding")]
    )


@in_loop
async def test_a_compressed_body_passes_unchanged(tmp_path: Path) -> None:
    """As on SageMaker, which drops Content-Encoding: the container receives the same bytes."""
    body = gzip.compress(b"x" * 1000, mtime=0)
    messages: list[str] = []
    server = fake_server(tmp_path, messages)
    async with running_server(received) as port, connected(server, port):
        endpoint = endpoint_of(server, CONTAINER)
        with listen(0) as listener:
            async with serving_gateway(gateway_application({"e": endpoint}), listener, print):
                url = f"http://127.0.0.1:{listener.getsockname()[1]}{INVOCATIONS}"
                headers = {"Content-Encoding": "gzip"}
                for _ in range(2):
                    async with server.session.post(url, data=body, headers=headers) as response:
                        assert await response.json() == [body.hex(), None]
    (message,) = messages
    assert "a request has Content-Encoding gzip. SageMaker removes this header" in message
