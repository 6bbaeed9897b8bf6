"""The life cycle of a multi-model container's models, against a container that is played by a web server."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from constructs_triton.local.gateway import multi_model
from constructs_triton.local.gateway.multi_model import MultiModelContainer
from constructs_triton.local.gateway.runtime_errors import RuntimeApiError
from constructs_triton.local.server.installation import ModelPython, TritonInstallation
from constructs_triton.local.server.server import ServerSettings, TritonServer
from constructs_triton.local.sources.specs import ContainerSpec, EndpointSpec

CONFIG = b'backend: "identity"\n'
NOWHERE = Path("/nowhere")


class PlayedContainer:
    """Answers loads with the statuses it is given, the last one for ever, once it may."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.calls: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.calls.append(f"{request.method} {request.headers['X-Amzn-SageMaker-Target-Model']}")
        await self.may_answer.wait()
        if request.method == "DELETE":
            return web.Response()
        return web.Response(status=self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0])


async def _run(
    folder: Path, played: PlayedContainer, use: Callable[[MultiModelContainer], Awaitable[None]]
) -> None:
    installation = TritonInstallation(NOWHERE, NOWHERE, NOWHERE, None)
    settings = ServerSettings(installation, ModelPython(NOWHERE, (3, 11), None), lambda _: None)
    server = TritonServer("e/v", ContainerSpec("m", "", "s3://bucket/models/"), settings)
    server.directory = folder
    server.models_directory.mkdir(parents=True)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", played.handle)
    async with TestServer(application) as place, aiohttp.ClientSession() as session:
        server.port = place.port or 0
        container = MultiModelContainer(EndpointSpec("e", "s", ()), server, session, 2**60)
        container.place({name: _archive(folder / name) for name in ("a.tar.gz", "b.tar.gz")})
        await use(container)


def _archive(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("m/config.pbtxt")
        member.size = len(CONFIG)
        tar.addfile(member, io.BytesIO(CONFIG))
    return path


def test_a_slow_load_is_not_ready_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told to come back, 429; the one load that was begun serves the caller who does."""
    monkeypatch.setattr(multi_model, "_CALLER_TIMEOUT_SECONDS", 0.05)

    async def scenario() -> None:
        played = PlayedContainer(200)
        played.may_answer.clear()

        async def use(container: MultiModelContainer) -> None:
            with pytest.raises(RuntimeApiError) as refused:
                async with container.use("a.tar.gz"):
                    pass
            assert (refused.value.status, refused.value.code) == (429, "ModelNotReadyException")
            played.may_answer.set()
            while not container.loaded_models:
                await asyncio.sleep(0.01)
            async with container.use("a.tar.gz"):
                pass
            assert played.calls == ["POST a.tar.gz"]

        await _run(tmp_path, played, use)

    asyncio.run(scenario())


def test_a_model_that_is_being_called_is_not_unloaded_for_another(tmp_path: Path) -> None:
    """507 while the other model serves is the caller's error; once that one is idle it makes room."""

    async def scenario() -> None:
        played = PlayedContainer(200, 507, 507, 200)

        async def use(container: MultiModelContainer) -> None:
            async with container.use("a.tar.gz"):
                with pytest.raises(RuntimeApiError) as refused:
                    async with container.use("b.tar.gz"):
                        pass
                assert refused.value.members["OriginalStatusCode"] == 507
                assert container.loaded_models == ("a.tar.gz",)
            async with container.use("b.tar.gz"):
                assert container.loaded_models == ("b.tar.gz",)
            loads = ["POST a.tar.gz", "POST b.tar.gz"]
            assert played.calls == [*loads, "POST b.tar.gz", "DELETE a.tar.gz", "POST b.tar.gz"]

        await _run(tmp_path, played, use)

    asyncio.run(scenario())
