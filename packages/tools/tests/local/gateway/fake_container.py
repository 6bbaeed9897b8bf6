"""A web server in place of a Triton server, for tests of the gateway that take milliseconds."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from aiohttp import web
from aiohttp.test_utils import TestServer

from constructs_triton_tools.local.gateway.inference_components import LocalVariant
from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.server.installation import ModelPython, TritonInstallation
from constructs_triton_tools.local.server.server import ServerSettings, TritonServer
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec

_Parameters = ParamSpec("_Parameters")
CONFIG = b'backend: "identity"\n'
TARGET_MODEL = "X-Amzn-SageMaker-Target-Model"
NOWHERE = Path("/nowhere")
SETTINGS = ServerSettings(
    TritonInstallation(NOWHERE, NOWHERE, NOWHERE, None),
    ModelPython(NOWHERE, (3, 11), None),
    lambda _: None,
    has_private_addresses=True,
    has_network_isolation=True,
)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def fake_server(
    folder: Path,
    messages: list[str] | None = None,
    *,
    container: ContainerSpec | None = None,
    has_private_mounts: bool = False,
    timeout_seconds: float = 60.0,
) -> TritonServer:
    """A ready server without a process; set its port and call ``connected``."""
    backends = folder / "installed"
    (backends / "identity").mkdir(parents=True, exist_ok=True)
    (backends / "identity" / "libtriton_identity.so").touch()
    installation = TritonInstallation(NOWHERE, backends, NOWHERE, None)
    report = (lambda _: None) if messages is None else messages.append
    settings = ServerSettings(
        installation,
        ModelPython(NOWHERE, (3, 11), None),
        report,
        has_private_mounts=has_private_mounts,
        invocation_timeout_seconds=timeout_seconds,
    )
    server = TritonServer(
        "e/v", container or ContainerSpec("m", "", "s3://bucket/models/"), settings
    )
    server.directory = folder
    server.is_ready = True
    return server


@asynccontextmanager
async def connected(server: TritonServer, port: int) -> AsyncIterator[None]:
    """The HTTP session of a server that listens on this port."""
    server.port = port
    try:
        yield
    finally:
        await server.session.close()


@asynccontextmanager
async def listening(application: web.Application, folder: Path, name: str) -> AsyncIterator[None]:
    """Serve an application on a socket of this name in a folder,
    which may have a path of any length.
    """
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    descriptor = os.open(folder, os.O_PATH)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/proc/self/fd/{descriptor}/{name}")
    os.close(descriptor)
    await web.SockSite(runner, listener).start()
    try:
        yield
    finally:
        await runner.cleanup()


def in_loop(test: Callable[_Parameters, Awaitable[None]]) -> Callable[_Parameters, None]:
    """Run an asynchronous test, which fails after ten seconds."""

    @wraps(test)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 10))

    return run


def endpoint_of(
    server: TritonServer, container: ContainerSpec, multi_model: MultiModelContainer | None = None
) -> RunningEndpoint:
    """Endpoint "e" with the only variant "A", which this server serves."""
    variant = VariantSpec("A", container)
    return RunningEndpoint(
        EndpointSpec("e", "s", (variant,)), [LocalVariant(variant, server, multi_model)]
    )


class FakeLoader:
    """Answers loads with ``statuses``, the last one repeatedly,
    and records every request and its URL.
    """

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.calls: list[str] = []
        self.urls: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.calls.append(f"{request.method} {request.headers[TARGET_MODEL]}")
        await self.may_answer.wait()
        if request.method == "DELETE":
            return web.Response()
        self.urls.append((await request.json())["url"])
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return web.Response(status=status, text="the server's own words")

    @property
    def loaded(self) -> set[str]:
        """The models of which the server has answered more loads than unloads."""
        names = {call.partition(" ")[2] for call in self.calls}
        return {
            name
            for name in names
            if self.calls.count(f"POST {name}") > self.calls.count(f"DELETE {name}")
        }


@asynccontextmanager
async def running_server(answer: Answer) -> AsyncIterator[int]:
    """Serve every path with ``answer``; yields the port."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application, shutdown_timeout=0.1) as server:
        yield server.port or 0


@asynccontextmanager
async def running_container(
    server: TritonServer,
    loader: FakeLoader,
    names: Iterable[str] = "ab",
    memory_limit_bytes: int = 2**60,
) -> AsyncIterator[MultiModelContainer]:
    """A multi-model container with one archive for each name, whose server is ``loader``."""
    server.models_directory.mkdir(parents=True)
    async with running_server(loader.handle) as port, connected(server, port):
        container = MultiModelContainer(EndpointSpec("e", "s", ()), server, memory_limit_bytes)
        container.place(
            {f"{name}.tar.gz": write_archive(server.directory / f"{name}.tar.gz") for name in names}
        )
        yield container


def write_archive(path: Path, files: Mapping[str, bytes] | None = None) -> Path:
    """An archive of these files, by default of one configuration."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (files or {"m/config.pbtxt": CONFIG}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path
