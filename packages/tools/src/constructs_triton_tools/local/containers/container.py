"""Starts, restarts and removes the container of one variant."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from constructs_triton_core.errors import ContainerExitError, LocalEndpointError
from constructs_triton_core.processes.async_children import AsyncChild, start_child
from constructs_triton_core.processes.children import PIPE, STDOUT, own_environment, python_command
from constructs_triton_tools.local.containers.engine import ContainerEngine
from constructs_triton_tools.local.containers.exec_relay import ExecRelay
from constructs_triton_tools.local.containers.run_arguments import (
    CONTAINER_PORT,
    HTTP_PORT,
    image_of,
    missing_image,
    refuse_unused,
    run_arguments,
    secret_environment,
    shared_memory_bytes,
)
from constructs_triton_tools.local.http_session import (
    open_session,
    read_statistics,
    wait_for_ping,
)
from constructs_triton_tools.local.interruptible import run_in_thread
from constructs_triton_tools.local.model_statistics import ModelStatistics
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.running_container import (
    RunningContainer,
    finish,
    wait_until_ready,
)
from constructs_triton_tools.local.server.local_model import prepare_models
from constructs_triton_tools.local.server.memory import available_bytes
from constructs_triton_tools.local.server.server_log import explain_failure
from constructs_triton_tools.local.server.unpacking import provide_models
from constructs_triton_tools.local.sources.inference_type import report_inference_type
from constructs_triton_tools.local.sources.specs import EndpointSpec, VariantSpec, label_of

_REMOVER = "from constructs_triton_tools.local.containers.remover import main; main(*sys.argv[1:])"
_PORT_INTERVAL_SECONDS = 0.05
#: How long the engine may take to deliver the last lines of a log.
_LOG_TIMEOUT_SECONDS = 5.0
#: Connections to an isolated container, each of which is a process in it.
_RELAY_CONNECTIONS = 32
# The same measure as for the bundled server: a container sees only its own processes.
_MEMORY_COMMAND = "cat /proc/[0-9]*/smaps_rollup 2>/dev/null; true"
#: How long a container may take to answer its first ping, if the template sets no timeout.
#: SageMaker waits 8 minutes; an image that starts for the first time is slow on a laptop.
_STARTUP_TIMEOUT_SECONDS = 480.0


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings that all containers of a run share. ``report`` prints a line for the user."""

    engine: ContainerEngine
    report: Callable[[str], None]
    invocation_timeout_seconds: float
    #: Whether models whose instance groups this machine cannot run are refused.
    is_exact: bool = False
    #: Folders of the whole run, which are deleted when it ends.
    run_folders: tuple[Path, ...] = ()


@dataclass(slots=True)
class TritonContainer(RunningContainer):
    """One container of docker or podman, with a folder for its models and its log."""

    settings: EngineSettings
    image: str
    shm_bytes: int
    startup_timeout_seconds: float
    _session: aiohttp.ClientSession | None = field(init=False, default=None)
    _relay: ExecRelay | None = field(init=False, default=None)
    _http_relay: ExecRelay | None = field(init=False, default=None)
    _http_port: int = field(init=False, default=0)
    _remover: AsyncChild | None = field(init=False, default=None)
    _logs: AsyncChild | None = field(init=False, default=None)

    @property
    def name(self) -> str:
        """The container's name."""
        return self.directory.name.lstrip(".")  # engines refuse a name that begins with a dot

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session that reaches the container."""
        assert self._session is not None
        return self._session

    @property
    def models_directory(self) -> Path:
        """The folder that a multi-model container sees as ``/opt/ml/models``."""
        return self.directory / "models"

    def identity(self) -> Mapping[str, object]:
        """Return the engine and the container's name."""
        return {"engine": self.settings.engine.name, "container": self.name}

    def prepare_target_model(self, model: Path, target_model: str) -> None:  # noqa: ARG002 - no stand-ins
        """Fit an unpacked model of a multi-model container to this machine."""
        prepare_models(model, self.settings.report, is_exact=self.settings.is_exact)

    def load_url(self, directory: Path) -> str:
        """Return the ``url`` that loads the model in the folder ``model`` of ``directory``."""
        return f"/opt/ml/models/{directory.name}/model"

    def memory_bytes(self) -> int:
        """Return how much memory the container's processes use; 0 if it is not running."""
        try:
            listing = self.settings.engine.run("exec", self.name, "bash", "-c", _MEMORY_COMMAND)
        except LocalEndpointError:
            return 0
        return sum(
            int(line.split()[1]) * 1024 for line in listing.splitlines() if line.startswith("Pss:")
        )

    async def statistics(self) -> tuple[ModelStatistics, ...]:
        """Return what the server has counted of each model, from inside the container."""
        if self._http_relay is None:
            self._http_relay = ExecRelay(self.settings.engine.name, self.name, HTTP_PORT)
            self._http_port = await self._http_relay.start()
        return await read_statistics(self.session, f"http://127.0.0.1:{self._http_port}/v2")

    async def _open(self) -> None:
        self.directory = self.directory.resolve()
        await self._start_remover()
        await run_in_thread(self._prepare)
        limit = _RELAY_CONNECTIONS if self.container.is_isolated else 0
        connector = aiohttp.TCPConnector(limit=limit)
        self._session = open_session(connector, self.settings.invocation_timeout_seconds)

    async def _close(self) -> None:
        if self._remover is not None:
            assert self._remover.stdin is not None
            await self._tell_remover("run goes on")
            self._remover.stdin.close()
            await self._remover.wait()
        await self._end_logs()
        if self._session is not None:
            await self._session.close()
        for relay in filter(None, (self._relay, self._http_relay)):
            await relay.close()

    async def _start_remover(self) -> None:
        folders = map(str, (self.directory, *self.settings.run_folders))
        self._remover = await start_child(
            python_command(_REMOVER, self.settings.engine.name, self.name, *folders),
            environment=own_environment(),
            is_kept=False,  # it ends with its standard input, after it has cleaned up
            stdin=PIPE,
        )

    async def _tell_remover(self, line: str) -> None:
        assert self._remover is not None
        assert self._remover.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._remover.stdin.write(f"{line}\n".encode())
            await self._remover.stdin.drain()

    def _prepare(self) -> None:
        if not self.settings.engine.has_image(self.image):
            endpoint = self.label.partition("/")[0]
            raise missing_image(self.label, endpoint, self.image, self.settings.engine.name)
        self.models_directory.mkdir()
        if not self.container.is_multi_model:
            provide_models(self.container, self._single_model)
            prepare_models(
                self._single_model, self.settings.report, is_exact=self.settings.is_exact
            )
        report_inference_type(self.container, self.image, self._single_model, self._note)

    @property
    def _single_model(self) -> Path:
        return self.directory / "model"

    async def _start_process(self) -> None:
        await self._tell_remover("started")
        # The engine finishes what it began, so a cancelled start waits: else the container would
        # stay.
        try:
            await finish(asyncio.create_task(asyncio.to_thread(self._run)))
        except LocalEndpointError:
            await self._remove()  # the engine may have created the container before it failed
            raise
        self.generation += 1
        self.launched.set()
        await self._follow_logs()
        why = await wait_until_ready(self._ping(), self._end(), self.startup_timeout_seconds)
        if why is not None:
            await self._remove()
            log = self.log.read_text(encoding="utf-8", errors="replace")
            raise ContainerExitError(
                f"{self.label}: the container {why}\n"
                f"{explain_failure(log, self.image, in_container=True)}"
            )
        self.is_ready = True

    def _run(self) -> None:
        models = self.models_directory if self.container.is_multi_model else self._single_model
        engine = self.settings.engine
        engine.run(
            *run_arguments(
                *(self.name, self.image, self.container, models),
                shm_bytes=self.shm_bytes,
                gpus=engine.gpu_arguments(),
            ),
            environment=secret_environment(self.container),
        )

    async def _ping(self) -> None:
        await self._find_port()
        await wait_for_ping(self.session, self.url, lambda: None)

    async def _find_port(self) -> None:
        if not self.container.is_isolated:
            self.port = await self._published_port()
        elif self._relay is None:
            self._relay = ExecRelay(self.settings.engine.name, self.name)
            self.port = await self._relay.start()

    async def _published_port(self) -> int:
        """Return the port on this machine.

        A container that has ended has none, so this never returns.
        """
        while True:
            published = ""
            with contextlib.suppress(LocalEndpointError):
                command = ("port", self.name, f"{CONTAINER_PORT}/tcp")
                published = await asyncio.to_thread(self.settings.engine.run, *command)
            if published:
                return int(published.splitlines()[0].rpartition(":")[2])
            await asyncio.sleep(_PORT_INTERVAL_SECONDS)

    async def _follow_logs(self) -> None:
        with self.log.open("ab") as log:
            command = [self.settings.engine.name, "logs", "--follow", self.name]
            self._logs = await start_child(
                command, environment=own_environment(), stdout=log, stderr=STDOUT
            )

    async def _end_logs(self) -> None:
        """Wait for the last lines of the log; the engine's process may outlive the container."""
        if self._logs is None:
            return
        try:
            await asyncio.wait_for(self._logs.wait(), _LOG_TIMEOUT_SECONDS)
        except TimeoutError:
            self._logs.kill()
            await self._logs.wait()
        self._logs = None

    async def _end(self) -> str:
        """Wait until the container ends; return its exit code, or ``""`` if it was removed."""
        command = [self.settings.engine.name, "wait", self.name]
        process = await start_child(command, environment=own_environment(), stdout=PIPE)
        try:
            output, _ = await process.communicate()
            return output.decode(errors="replace").strip()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _remove(self) -> None:
        """Remove the container, so that its name is free again."""
        for command in (("kill", self.name), ("rm", "--force", self.name)):
            with contextlib.suppress(LocalEndpointError):  # it has ended, or has been removed
                await finish(
                    asyncio.create_task(asyncio.to_thread(self.settings.engine.run, *command))
                )
        await self._end_logs()
        await self._tell_remover("removed")

    async def _clean_up(self, code: object) -> None:
        how = f"with exit code {code}" if code else "because it was removed"
        self._note(f"the container ended {how}; starting another one")
        await self._remove()


class EngineContainers:
    """Creates containers of the engine in ``options``.

    ``run_folder`` is deleted if the gateway is killed.
    """

    def __init__(
        self,
        options: RunOptions,
        specs: Sequence[EndpointSpec],
        report: Callable[[str], None],
        run_folder: Path,
    ) -> None:
        assert options.engine is not None
        refuse_unused(options.images, specs)
        engine = ContainerEngine(options.engine)
        self._memory_bytes = engine.memory_bytes()
        self._options = options
        timeout = options.invocation_timeout_seconds
        self._settings = EngineSettings(engine, report, timeout, options.is_exact, (run_folder,))

    def create(self, endpoint: EndpointSpec, variant: VariantSpec) -> TritonContainer:
        """Return the container of a variant, which is not started."""
        timeout = self._options.startup_timeout_seconds or variant.startup_timeout_seconds
        return TritonContainer(
            label_of(endpoint, variant),
            variant.container,
            self._settings,
            image_of(endpoint, variant, self._options.images),
            shared_memory_bytes(variant.instance_types, self._memory_bytes),
            timeout or _STARTUP_TIMEOUT_SECONDS,
        )

    def available_bytes(self) -> int:
        """Return how much memory containers can use; on macOS all of their virtual machine's."""
        if sys.platform != "linux":
            return self._memory_bytes
        return min(self._memory_bytes, available_bytes())
