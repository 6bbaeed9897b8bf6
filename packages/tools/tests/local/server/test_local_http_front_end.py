"""Where generate requests go, by the server's version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from fake_container import in_loop, listening

from constructs_triton_tools.local.server.http_front_end import HttpFrontEnd


async def found(folder: Path, metadata: str) -> tuple[str | None, list[str], list[str]]:
    """The URL, the reports and the paths that were asked for,
    with a server that answers ``metadata``.
    """
    paths: list[str] = []
    messages: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(text=metadata, content_type="application/json")

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    front_end = HttpFrontEnd("generate_stream", 5.0)
    assert front_end.prepare(folder) == ("--allow-http=true", "--http-address=unix:http.sock")
    async with listening(application, folder, "http.sock"):
        destination = await front_end.generate_destination("a b", messages.append)
    await front_end.close()
    return destination and destination.url, messages, paths


@pytest.mark.parametrize(
    ("version", "url", "message"),
    [
        (
            "2.38.0",
            None,
            "this Triton server has no generate extension, so it cannot use generate_stream",
        ),
        ("2.39.0", "http://localhost/v2/models/a%20b/generate_stream", ""),
        ("2.55.0", "http://localhost/v2/models/a%20b/generate_stream", ""),
        ("2.56.0", None, ""),
        (
            "of mine",
            None,
            "this Triton server has no generate extension, so it cannot use generate_stream",
        ),
    ],
)
def test_destination_by_version(
    tmp_path: Path, version: str, url: str | None, message: str
) -> None:
    """The HTTP front end, SageMaker's own where it can generate, and a report where none can."""
    for _ in range(2):  # the second server finds the socket of the first one
        got, messages, paths = asyncio.run(
            found(tmp_path, f'{{"name":"triton","version":"{version}"}}')
        )
        assert (got, paths) == (url, ["/v2"])
        assert [each.startswith(message) for each in messages] == [True] * bool(message)


@in_loop
async def test_a_server_that_does_not_answer_cannot_generate(tmp_path: Path) -> None:
    """Without the socket there is no front end that generates."""
    messages: list[str] = []
    front_end = HttpFrontEnd("generate", 5.0)
    front_end.prepare(tmp_path)
    assert await front_end.generate_destination("m", messages.append) is None
    await front_end.close()
    assert len(messages) == 1
