"""Starts the servers and the gateway of a local run, and stops them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from constructs_triton.errors import ConstructsTritonError, LocalEndpointError
from constructs_triton.facts.limits import INVOCATION_TIMEOUT_SECONDS
from constructs_triton.local.gateway.gateway import gateway_application
from constructs_triton.local.gateway.multi_model import MultiModelContainer
from constructs_triton.local.gateway.running_endpoint import LocalVariant, RunningEndpoint
from constructs_triton.local.server.connection import READ_BUFFER_BYTES
from constructs_triton.local.server.host_features import (
    has_network_isolation,
    has_private_addresses,
    has_private_mounts,
)
from constructs_triton.local.server.installation import ModelPython, find_installation, inspect_python
from constructs_triton.local.server.memory import available_bytes
from constructs_triton.local.server.server import ServerSettings, TritonServer, finish
from constructs_triton.local.sources.bucket_archives import with_archives_of
from constructs_triton.local.sources.sources import read_source
from constructs_triton.local.sources.specs import EndpointSpec, VariantSpec
from constructs_triton.local.stand_ins.frameworks import PACKAGES
from constructs_triton.local.stand_ins.stand_ins import StandIns
from constructs_triton.local.watch import changes

__all__ = ["LocalRun", "RunOptions"]

_HOST = "127.0.0.1"
#: The part of the free memory that all multi-model containers share equally by default.
_MEMORY_SHARE = 0.7
_IDLE_INTERVAL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of ``local up``. ``source`` is a cloud assembly, a repository or an archive.

    With ``aws_endpoint_url`` the deployed endpoints are run instead of those of ``source``. ``port`` 0 means
    any free port. ``bucket_folder`` takes the place of S3 for asynchronous endpoints and for archives that
    other programs put under the prefix of a multi-model endpoint. With
    ``allows_open_ports`` servers listen on all network interfaces if the platform has no private addresses.
    With ``watches`` the endpoints are replaced when files of ``source`` change.
    ``substitutes`` are the ONNX files and Python models that run in the place of others, by model name.
    """

    source: Path
    aws_endpoint_url: str | None = None
    stack: str | None = None
    endpoint: str | None = None
    model: str | None = None
    is_multi_model: bool = False
    port: int = 8080
    python: Path | None = None
    tritonserver: Path | None = None
    memory_limit_bytes: int | None = None
    startup_timeout_seconds: float | None = None
    invocation_timeout_seconds: float = INVOCATION_TIMEOUT_SECONDS
    bucket_folder: Path | None = None
    uses_private_mounts: bool = True
    allows_open_ports: bool = False
    until_stdin_closes: bool = False
    watches: bool = False
    uses_stand_ins: bool = True
    substitutes: Mapping[str, Path] = field(default_factory=dict)


@dataclass(slots=True)
class LocalRun:
    """Runs endpoints until it is stopped.

    ``report`` prints a line of progress. ``on_ready`` is called once with the gateway's URL and endpoints.
    """

    options: RunOptions
    report: Callable[[str], None]
    on_ready: Callable[[str, Sequence[RunningEndpoint]], None]

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or SIGHUP.

        Raises:
            LocalEndpointError: an endpoint cannot start.
            MissingDependencyError: the server or a library is not installed.
            RepositoryError: a model has errors.
        """
        asyncio.run(self._run())

    async def _run(self) -> None:
        stop = _stop_event(self.options.until_stdin_closes)
        async with AsyncExitStack() as stack:
            serving = asyncio.create_task(self._start(stack))
            stopping = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if serving.done():
                    serving.result()
                    await stopping
            finally:
                stopping.cancel()
                serving.cancel()
                await asyncio.gather(serving, stopping, return_exceptions=True)

    async def _start(self, stack: AsyncExitStack) -> None:
        options = self.options
        temporary = tempfile.TemporaryDirectory(prefix="constructs-triton-", ignore_cleanup_errors=True)
        scratch = Path(stack.enter_context(temporary))
        specs = await finish(asyncio.create_task(asyncio.to_thread(self._read_specs, scratch)))
        settings = self._settings(scratch, specs)
        listener = stack.enter_context(_listen(options.port))
        servers = await stack.enter_async_context(AsyncExitStack())
        endpoints = await self._start_endpoints(specs, settings, servers)
        application = gateway_application(endpoints, options.bucket_folder)
        await stack.enter_async_context(_serving(application, listener))
        self.on_ready(f"http://{_HOST}:{listener.getsockname()[1]}", list(endpoints.values()))
        if options.watches:
            await self._watch(settings, endpoints, servers, stack)

    async def _start_endpoints(
        self, specs: Sequence[EndpointSpec], settings: ServerSettings, servers: AsyncExitStack
    ) -> dict[str, RunningEndpoint]:
        """Start all servers and return the endpoints by name. Closing ``servers`` stops them."""
        variants = await _start_variants(specs, settings, self.options.memory_limit_bytes, servers)
        return {spec.name: RunningEndpoint(spec, variants[spec.name]) for spec in specs}

    async def _watch(
        self,
        settings: ServerSettings,
        endpoints: dict[str, RunningEndpoint],
        servers: AsyncExitStack,
        stack: AsyncExitStack,
    ) -> None:
        """When a file changes, start new servers and then stop the old ones, as an update in AWS does."""
        async for _ in changes(self.options.source):
            newer = await stack.enter_async_context(AsyncExitStack())
            try:
                folder = Path(tempfile.mkdtemp(dir=settings.run_folders[0]))
                specs = await finish(asyncio.create_task(asyncio.to_thread(self._read_specs, folder)))
                started = await self._start_endpoints(specs, settings, newer)
            except ConstructsTritonError as error:
                await newer.aclose()
                self.report(f"the changed models cannot start, and the previous ones keep running: {error}")
                continue
            previous = list(endpoints.values())
            endpoints.clear()
            endpoints.update(started)
            self.report("the changed models are running")
            await _wait_until_idle(previous, settings.invocation_timeout_seconds)
            await servers.aclose()
            servers = newer

    def _settings(self, scratch: Path, specs: Sequence[EndpointSpec]) -> ServerSettings:
        """Find the server, the Python and the features of this machine that all endpoints share."""
        options, report = self.options, self.report
        installation = find_installation(options.tritonserver)
        python = inspect_python(options.python, PACKAGES if options.uses_stand_ins else None)
        needed = [installation.executable, python.executable]
        has_addresses = has_private_addresses(report, allows_open_ports=options.allows_open_ports)
        isolated = [_label(*pair) for pair in _pairs(specs) if pair[1].container.is_isolated]
        return ServerSettings(
            installation=installation,
            python=python,
            report=report,
            startup_timeout_seconds=options.startup_timeout_seconds,
            invocation_timeout_seconds=options.invocation_timeout_seconds,
            has_private_mounts=has_private_mounts(needed, report, is_wanted=options.uses_private_mounts),
            has_private_addresses=has_addresses,
            has_network_isolation=has_network_isolation(isolated, report, has_addresses=has_addresses),
            stand_ins=self._stand_ins(python),
            run_folders=(scratch,),
        )

    def _stand_ins(self, python: ModelPython) -> StandIns | None:
        options = self.options
        if not options.uses_stand_ins:
            return None
        return StandIns(python.packages, python.executable, options.substitutes)

    def _read_specs(self, scratch: Path) -> Sequence[EndpointSpec]:
        options = self.options
        if options.aws_endpoint_url is None:
            specs = read_source(
                options.source,
                scratch,
                stack=options.stack,
                endpoint=options.endpoint,
                model=options.model,
                is_multi_model=options.is_multi_model,
            )
            folder = options.bucket_folder
            return specs if folder is None else [with_archives_of(each, folder) for each in specs]
        from constructs_triton.local.sources.deployed import read_deployed_endpoints  # noqa: PLC0415 - boto3

        return read_deployed_endpoints(options.aws_endpoint_url, scratch, endpoint=options.endpoint)


async def _start_variants(
    specs: Sequence[EndpointSpec],
    settings: ServerSettings,
    memory_limit_bytes: int | None,
    stack: AsyncExitStack,
) -> dict[str, list[LocalVariant]]:
    """Start all servers at the same time. Each is on the stack, to be stopped, before it starts."""
    starts: dict[str, list[asyncio.Task[LocalVariant]]] = {}
    servers: list[TritonServer] = []
    stack.push_async_callback(_stop_all, servers)
    pairs = _pairs(specs)
    multi_models = sum(variant.container.is_multi_model for _, variant in pairs)
    limit = memory_limit_bytes or int(available_bytes() * _MEMORY_SHARE / max(1, multi_models))
    async with _first_error() as group:
        for spec, variant in pairs:
            server = _server_of(spec, variant, settings)
            servers.append(server)
            start = _start_variant(spec, variant, server, limit)
            starts.setdefault(spec.name, []).append(group.create_task(start))
    return {name: [task.result() for task in tasks] for name, tasks in starts.items()}


@asynccontextmanager
async def _first_error() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises the first error instead of an exception group."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except* ConstructsTritonError as errors:
        raise errors.exceptions[0] from None


async def _stop_all(servers: Sequence[TritonServer]) -> None:
    await asyncio.gather(*(server.stop() for server in servers))


async def _wait_until_idle(endpoints: Sequence[RunningEndpoint], timeout_seconds: float) -> None:
    """Wait for requests in progress, as long as a container may take to answer."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    variants = [variant for endpoint in endpoints for variant in endpoint.all_variants()]
    while asyncio.get_running_loop().time() < deadline and not all(each.is_idle for each in variants):
        await asyncio.sleep(_IDLE_INTERVAL_SECONDS)


def _pairs(specs: Sequence[EndpointSpec]) -> list[tuple[EndpointSpec, VariantSpec]]:
    """Every variant, shadow variants too, with its endpoint."""
    return [(spec, variant) for spec in specs for variant in (*spec.variants, *spec.shadow_variants)]


def _label(spec: EndpointSpec, variant: VariantSpec) -> str:
    return f"{spec.name}/{variant.name}"


def _server_of(spec: EndpointSpec, variant: VariantSpec, settings: ServerSettings) -> TritonServer:
    server = TritonServer(_label(spec, variant), variant.container, settings)
    if variant.startup_timeout_seconds is not None:
        server.startup_timeout_seconds = variant.startup_timeout_seconds
    return server


async def _start_variant(
    spec: EndpointSpec,
    variant: VariantSpec,
    server: TritonServer,
    memory_limit_bytes: int,
) -> LocalVariant:
    await server.start()
    if not variant.container.is_multi_model:
        return LocalVariant(variant, server, None)
    multi_model = MultiModelContainer(spec, server, memory_limit_bytes)
    multi_model.place(variant.container.archives)
    return LocalVariant(variant, server, multi_model)


def _stop_event(until_stdin_closes: bool) -> asyncio.Event:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if until_stdin_closes:

        def read() -> None:
            if not os.read(sys.stdin.fileno(), 1024):
                loop.remove_reader(sys.stdin)
                stop.set()

        loop.add_reader(sys.stdin, read)
    return stop


@contextlib.contextmanager
def _listen(port: int) -> Iterator[socket.socket]:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, port))
            listener.listen()  # two runs could both bind a port, but only one can listen
        except OSError as error:
            raise LocalEndpointError(
                f"--port: cannot listen on {_HOST}, got {port} ({error.strerror}); "
                "set --port to a free port, or to 0 for any free port"
            ) from error
        yield listener
    finally:
        listener.close()


@asynccontextmanager
async def _serving(application: web.Application, listener: socket.socket) -> AsyncIterator[None]:
    # SageMaker does not look into bodies, so a compressed one reaches the container as it is.
    runner = web.AppRunner(
        application,
        access_log=None,
        read_bufsize=READ_BUFFER_BYTES,
        auto_decompress=False,
        shutdown_timeout=1.0,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()
