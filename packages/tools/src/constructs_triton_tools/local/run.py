"""Starts the servers and the gateway of a local run, and stops them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.errors import (
    ConstructsTritonError,
    InvalidValueError,
    LocalEndpointError,
)
from constructs_triton_tools.local.containers.container import EngineContainers
from constructs_triton_tools.local.gateway.gateway import gateway_application
from constructs_triton_tools.local.gateway.inference_components import LocalComponent, LocalVariant
from constructs_triton_tools.local.gateway.listener import HOST, listen, serving
from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.interruptible import run_in_thread
from constructs_triton_tools.local.options import DEFAULT_WAKE_SECONDS, RunOptions
from constructs_triton_tools.local.running_container import ContainerRunner, RunningContainer
from constructs_triton_tools.local.sources.deployed import read_deployed_endpoints
from constructs_triton_tools.local.sources.sources import read_source
from constructs_triton_tools.local.sources.specs import (
    ComponentSpec,
    EndpointSpec,
    VariantSpec,
    variants_of,
)
from triton_model_check.model_repository.ignore import IGNORE_FILE, IgnoreRules

if TYPE_CHECKING:
    from constructs_triton_tools.local.page.application import Page

__all__ = ["LocalRun", "RunOptions"]

_INTERVAL_SECONDS = 0.5
_DEFAULTS = IgnoreRules()
_State = Mapping[str, tuple[int, int]]
#: The part of the free memory that all multi-model containers share equally by default.
_MEMORY_SHARE = 0.7
_IDLE_INTERVAL_SECONDS = 0.1


async def changes(source: Path, interval_seconds: float = _INTERVAL_SECONDS) -> AsyncIterator[None]:
    """Yield each time that files below ``source`` have changed and then stayed the same for an
    interval.

    Sizes and times of modification are compared. A change while the caller works is yielded next.
    """
    known = await asyncio.to_thread(_state, source)
    previous = known
    while True:
        await asyncio.sleep(interval_seconds)
        found = await asyncio.to_thread(_state, source)
        is_stable = found == previous
        previous = found
        if is_stable and found != known:
            known = found
            yield


def _state(source: Path) -> _State:
    if not source.is_dir():
        return dict(_entry(source))
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, files in os.walk(source, followlinks=True):
        folders[:] = [name for name in folders if not _is_ignored(name)]
        for name in files:
            if not _is_ignored(name):
                found.update(_entry(Path(folder, name)))
    return found


def _is_ignored(name: str) -> bool:
    """Whether packing leaves the file or folder out by default;
    a change of the rules is a change.
    """
    return name != IGNORE_FILE and _DEFAULTS.leaves_out(name)


def _entry(path: Path) -> list[tuple[str, tuple[int, int]]]:
    """Return the file's size and time of modification; nothing if it has just been deleted."""
    try:
        status = path.stat()
    except OSError:
        return []
    return [(str(path), (status.st_size, status.st_mtime_ns))]


@dataclass(slots=True)
class LocalRun:
    """Runs endpoints until it is stopped.

    ``report`` prints a line of progress. ``on_ready`` is called once with the gateway's URL and
    endpoints.
    """

    options: RunOptions
    report: Callable[[str], None]
    on_ready: Callable[[str, Sequence[RunningEndpoint]], None]

    def run(self) -> None:
        """Serve until SIGTERM, SIGHUP or Ctrl-C.

        Raises:
            KeyboardInterrupt: Ctrl-C (SIGINT) ended the run; everything has stopped.
            LocalEndpointError: an endpoint cannot start.
            MissingDependencyError: the server or a library is not installed.
            RepositoryError: a model has errors.
        """
        if asyncio.run(self._run()) == signal.SIGINT:
            raise KeyboardInterrupt

    async def _run(self) -> int | None:
        """Return the signal that ended the run; ``None`` if standard input was closed."""
        stopping = _end_of_run(self.options.until_stdin_closes)
        async with AsyncExitStack() as stack:
            serving = asyncio.create_task(self._start(stack))
            try:
                either: set[asyncio.Future[Any]] = {serving, stopping}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if serving.done():
                    serving.result()
                    await stopping
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
        return stopping.result()

    async def _start(self, stack: AsyncExitStack) -> None:
        options = self.options
        page = self._page()
        temporary = tempfile.TemporaryDirectory(
            prefix="constructs-triton-", ignore_cleanup_errors=True
        )
        scratch = Path(stack.enter_context(temporary))
        specs = await run_in_thread(partial(self._read_specs, scratch))
        runner = await run_in_thread(partial(self._runner, scratch, specs))
        listener = stack.enter_context(listen(options.port))
        servers = await stack.enter_async_context(AsyncExitStack())
        endpoints = await self._start_endpoints(specs, runner, servers)
        application = gateway_application(endpoints, options.bucket_folder, page)
        await stack.enter_async_context(serving(application, listener, self.report))
        self.on_ready(f"http://{HOST}:{listener.getsockname()[1]}", list(endpoints.values()))
        if options.watches:
            await self._watch(scratch, runner, endpoints, servers, stack)

    def _page(self) -> Page | None:
        """Return the page of the run, which keeps its messages; ``None`` without ``--ui``."""
        if not self.options.ui:
            return None
        from constructs_triton_tools.local.page.application import Page

        page = Page()
        self.report = page.messages.reporter(self.report)
        return page

    async def _start_endpoints(
        self, specs: Sequence[EndpointSpec], runner: ContainerRunner, servers: AsyncExitStack
    ) -> dict[str, RunningEndpoint]:
        """Start all servers and return the endpoints by name. Closing ``servers`` stops them."""
        running = await _start_variants(specs, runner, self.options, servers)
        return {spec.name: RunningEndpoint(spec, running[spec.name]) for spec in specs}

    async def _watch(
        self,
        scratch: Path,
        runner: ContainerRunner,
        endpoints: dict[str, RunningEndpoint],
        servers: AsyncExitStack,
        stack: AsyncExitStack,
    ) -> None:
        """When a file changes, start new servers and then stop the old ones,
        as an update in AWS does.
        """
        async for _ in changes(self.options.source):
            newer = await stack.enter_async_context(AsyncExitStack())
            try:
                folder = Path(tempfile.mkdtemp(dir=scratch))
                specs = await run_in_thread(partial(self._read_specs, folder))
                started = await self._start_endpoints(specs, runner, newer)
            except ConstructsTritonError as error:
                await newer.aclose()
                self.report(
                    f"the changed models cannot start, and the previous ones keep running: {error}"
                )
                continue
            previous = list(endpoints.values())
            for name in started.keys() & endpoints.keys():
                started[name].keep_copies_of(endpoints[name])
            endpoints.clear()
            endpoints.update(started)
            self.report("the changed models are running")
            await _wait_until_idle(previous, self.options.invocation_timeout_seconds)
            await servers.aclose()
            servers = newer

    def _runner(self, scratch: Path, specs: Sequence[EndpointSpec]) -> ContainerRunner:
        """Return what creates the containers. Only the bundled server needs modules for Linux."""
        options = self.options
        if options.engine is None:
            from constructs_triton_tools.local.bundled_servers import BundledServers

            return BundledServers.find(options, specs, self.report, scratch)
        return EngineContainers(options, specs, self.report, scratch)

    def _read_specs(self, scratch: Path) -> Sequence[EndpointSpec]:
        return _runnable(self._all_specs(scratch), self.report)

    def _all_specs(self, scratch: Path) -> Sequence[EndpointSpec]:
        options = self.options
        if options.aws_endpoint_url is None:
            specs = read_source(
                options.source,
                scratch,
                stack=options.stack,
                endpoint=options.endpoint,
                model=options.model,
                is_multi_model=options.is_multi_model,
                calls=options.calls,
            )
            folder = options.bucket_folder
            if folder is None:
                return specs

            from constructs_triton_tools.local.sources.bucket_archives import with_archives_of

            return [with_archives_of(spec, folder) for spec in specs]

        return read_deployed_endpoints(
            options.aws_endpoint_url, scratch, endpoint=options.endpoint, stack=options.stack
        )


def _runnable(
    specs: Sequence[EndpointSpec], report: Callable[[str], None]
) -> Sequence[EndpointSpec]:
    """Return the endpoints of which something runs, and report the components that do not run."""
    for spec in specs:
        for name in spec.not_run:
            report(
                f"{spec.name}/{name}: its container is not Triton, "
                "so it does not run on your machine"
            )
    found = [endpoint for endpoint in specs if endpoint.variants or endpoint.components]
    if not found:
        names = ", ".join(endpoint.name for endpoint in specs)
        raise LocalEndpointError(
            f"{names}: no container of Triton runs on these endpoints; deploy them to call them, "
            "or select other endpoints with --endpoint"
        )
    return found


async def _start_variants(
    specs: Sequence[EndpointSpec],
    runner: ContainerRunner,
    options: RunOptions,
    stack: AsyncExitStack,
) -> dict[str, list[LocalVariant]]:
    """Start all servers at the same time. Each is on the stack, to be stopped, before it starts."""
    starts: dict[str, list[asyncio.Task[LocalVariant]]] = {}
    servers: list[RunningContainer] = []
    stack.push_async_callback(_stop_all, servers)
    pairs = variants_of(specs)
    multi_models = sum(variant.container.is_multi_model for _, variant in pairs)
    limit = int(runner.available_bytes() * _MEMORY_SHARE / max(1, multi_models))
    if options.memory_limit_mib is not None:
        limit = options.memory_limit_mib * 2**20
    async with _first_error() as group:
        for spec, variant in pairs:
            server = runner.create(spec, variant)
            servers.append(server)
            start = _start_variant(
                spec, variant, server, limit, wake_seconds=options.wake_delay_seconds
            )
            starts.setdefault(spec.name, []).append(group.create_task(start))
    return {name: [task.result() for task in tasks] for name, tasks in starts.items()}


@asynccontextmanager
async def _first_error() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises the first error instead of an exception group."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except* Exception as errors:
        raise errors.exceptions[0] from None


async def _stop_all(servers: Sequence[RunningContainer]) -> None:
    await asyncio.gather(*(server.stop() for server in servers))


async def _wait_until_idle(endpoints: Sequence[RunningEndpoint], timeout_seconds: float) -> None:
    """Wait for requests in progress, as long as a container may take to answer."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    servers = list(chain.from_iterable(endpoint.all_servers() for endpoint in endpoints))
    while asyncio.get_running_loop().time() < deadline:
        if all(server.is_idle for server in servers):
            return
        await asyncio.sleep(_IDLE_INTERVAL_SECONDS)


async def _start_variant(
    spec: EndpointSpec,
    variant: VariantSpec,
    server: RunningContainer,
    memory_limit_bytes: int,
    *,
    wake_seconds: float = DEFAULT_WAKE_SECONDS,
) -> LocalVariant:
    await server.start()
    if isinstance(variant, ComponentSpec):
        return LocalComponent(variant, server, wake_seconds)
    if not variant.container.is_multi_model:
        return LocalVariant(variant, server, None)
    multi_model = MultiModelContainer(spec, server, memory_limit_bytes)
    multi_model.place(variant.container.archives)
    return LocalVariant(variant, server, multi_model)


_NO_STREAM = (
    "--until-stdin-closes: needs a pipe or a terminal, got a standard input that is closed, a file "
    "or /dev/null, which cannot be watched; pass a pipe (in Python: stdin=subprocess.PIPE), or "
    "remove the option"
)


def _end_of_run(until_stdin_closes: bool) -> asyncio.Future[int | None]:
    """Return what gets the number of the first signal,
    or ``None`` when standard input is closed.
    """
    loop = asyncio.get_running_loop()
    end: asyncio.Future[int | None] = loop.create_future()

    def stop(number: int | None) -> None:
        if not end.done():
            end.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    if until_stdin_closes:
        if sys.stdin is None:
            raise InvalidValueError(_NO_STREAM)

        def read() -> None:
            if not os.read(sys.stdin.fileno(), 1024):
                loop.remove_reader(sys.stdin)
                stop(None)

        try:
            loop.add_reader(sys.stdin, read)
        except PermissionError:  # epoll watches neither files nor /dev/null
            raise InvalidValueError(_NO_STREAM) from None
    return end
