"""Starts the servers and the gateway of a local run, and stops them.

A server takes seconds to start, so it starts before all else: the machine is inspected while the
models are read, and the gateway, whose libraries take long to import, is imported while the servers
start.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.errors import (
    ConstructsTritonError,
    InvalidValueError,
    LocalEndpointError,
)
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_tools.local.changed_files import FilesState, changes, files_state
from constructs_triton_tools.local.gateway.gateway_port import HOST, listen
from constructs_triton_tools.local.interruptible import run_in_thread
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.running_container import ContainerRunner
from constructs_triton_tools.local.server_start import (
    LocalServer,
    create_servers,
    first_error,
    start_all,
)

if TYPE_CHECKING:
    from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
    from constructs_triton_tools.local.page.application import Page
    from constructs_triton_tools.local.server.machine import Machine
    from constructs_triton_tools.local.sources.specs import EndpointSpec

__all__ = ["LocalRun", "RunOptions"]

_GATEWAY = "constructs_triton_tools.local.gateway.gateway"


@dataclass(slots=True)
class LocalRun:
    """Runs endpoints until it is stopped.

    ``report`` prints a line of progress. ``on_ready`` is called once with the gateway's URL and
    endpoints.
    """

    options: RunOptions
    report: Callable[[str], None]
    on_ready: Callable[[str, Sequence[RunningEndpoint]], None]
    #: The files below the source before they were read, for ``--watch``.
    _files: FilesState = field(init=False, default_factory=dict)

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
        scratch = stack.enter_context(temporary_folder())
        # Before they are read: a change while the servers start is one.
        if options.watches:
            self._files = await run_in_thread(partial(files_state, options.source))
        specs, runner = await self._prepare(scratch)
        listener = stack.enter_context(listen(options.port))
        servers = await stack.enter_async_context(AsyncExitStack())
        endpoints = await self._start_endpoints(specs, runner, servers)
        from constructs_triton_tools.local.gateway.gateway import gateway_application
        from constructs_triton_tools.local.gateway.listener import serving

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
        available_bytes = runner.available_bytes()
        created = create_servers(specs, runner, servers)
        async with first_error() as group:
            group.create_task(start_all(created))
            group.create_task(_import_gateway(created))
        from constructs_triton_tools.local.gateway.served_endpoints import served_endpoints

        return served_endpoints(specs, created, self.options, available_bytes)

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
        from constructs_triton_tools.local.gateway.served_endpoints import wait_until_idle

        async for _ in changes(self.options.source, self._files):
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
            await wait_until_idle(previous, self.options.invocation_timeout_seconds)
            await servers.aclose()
            servers = newer

    async def _prepare(self, scratch: Path) -> tuple[Sequence[EndpointSpec], ContainerRunner]:
        """Read the endpoints, and return what creates their containers.

        Only the bundled server needs modules for Linux.
        """
        options = self.options
        read = partial(self._read_specs, scratch)
        if options.engine is not None:
            from constructs_triton_tools.local.containers.container import EngineContainers

            specs = await run_in_thread(read)
            create = partial(EngineContainers, options, specs, self.report, scratch)
            return specs, await run_in_thread(create)

        specs, machine = await self._read_and_inspect(read)
        from constructs_triton_tools.local.bundled_servers import BundledServers

        find = partial(BundledServers.on, machine, options, specs, self.report, scratch)
        return specs, await run_in_thread(find)

    async def _read_and_inspect(
        self, read: Callable[[], Sequence[EndpointSpec]]
    ) -> tuple[Sequence[EndpointSpec], Machine]:
        """Read the endpoints while the machine is inspected. Their errors come before its own."""
        from constructs_triton_tools.local.server.machine import Machine

        inspection = asyncio.create_task(Machine.inspect(self.options, self.report))
        try:
            specs = await run_in_thread(read)
        except BaseException:
            inspection.cancel()
            await asyncio.gather(inspection, return_exceptions=True)
            raise
        return specs, await inspection

    def _read_specs(self, scratch: Path) -> Sequence[EndpointSpec]:
        specs = _runnable(self._all_specs(scratch), self.report)
        if self.options.stand_ins:
            from constructs_triton_tools.local.stand_ins.replaced_models import check_replaced_names

            check_replaced_names(self.options.stand_ins, specs)
        return specs

    def _all_specs(self, scratch: Path) -> Sequence[EndpointSpec]:
        options = self.options
        if options.aws_endpoint_url is None:
            from constructs_triton_tools.local.sources.sources import read_source

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

        from constructs_triton_tools.local.sources.deployed import read_deployed_endpoints

        return read_deployed_endpoints(
            options.aws_endpoint_url, scratch, endpoint=options.endpoint, stack=options.stack
        )


async def _import_gateway(servers: Sequence[LocalServer]) -> None:
    """Import the gateway when all servers have their processes: two imports take turns."""
    for server in servers:
        await server.container.launched.wait()
    await asyncio.to_thread(import_module, _GATEWAY)


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
