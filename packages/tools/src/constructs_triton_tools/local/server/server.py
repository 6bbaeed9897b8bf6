"""Starts, restarts and stops the Triton server of one container."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.errors import ContainerExitError, LocalEndpointError
from constructs_triton_core.facts.limits import INVOCATION_TIMEOUT_SECONDS
from constructs_triton_tools.local.interruptible import run_in_thread
from constructs_triton_tools.local.model_statistics import ModelStatistics
from constructs_triton_tools.local.running_container import (
    Destination,
    RunningContainer,
    wait_until_ready,
)
from constructs_triton_tools.local.server.front_end_ports import (
    FrontEnd,
    FrontEndPorts,
    private_addresses,
    reserve_port,
)
from constructs_triton_tools.local.server.http_front_end import HttpFrontEnd
from constructs_triton_tools.local.server.installation import (
    ModelPython,
    TritonInstallation,
    make_backends,
)
from constructs_triton_tools.local.server.local_model import fit_models, make_loadable
from constructs_triton_tools.local.server.memory import (
    fitted_environment,
    region_bytes,
    session_bytes,
)
from constructs_triton_tools.local.server.namespaces import CONTAINER_FOLDER
from constructs_triton_tools.local.server.serve_script import (
    ServerCommand,
    fit_caches,
    server_command,
)
from constructs_triton_tools.local.server.server_log import (
    explain_failure,
    explained_exit,
    last_lines,
    raise_if_stub_ended,
    read_end,
    read_log,
)
from constructs_triton_tools.local.server.supervisor_process import SupervisorProcess
from constructs_triton_tools.local.server.unpacking import provide_models
from constructs_triton_tools.local.sources.inference_type import report_inference_type
from constructs_triton_tools.local.stand_ins.stand_ins import StandIns
from triton_model_check.model.shell_names import changed_by_shell
from triton_model_check.model_config.target import Target

if TYPE_CHECKING:
    import aiohttp

    from constructs_triton_tools.local.server.server_connection import ServerConnection

#: The port that SageMaker calls in a container.
_CONTAINER_PORT = 8080
#: How long a server may take to stop before it is killed.
_GRACE_SECONDS = 5.0
#: How long a server may take to answer its first ping, if the template sets no timeout.
_STARTUP_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings that all servers of a run share. ``report`` prints a line for the user."""

    installation: TritonInstallation
    python: ModelPython
    report: Callable[[str], None]
    startup_timeout_seconds: float | None = None
    invocation_timeout_seconds: float = INVOCATION_TIMEOUT_SECONDS
    #: Whether each server has a private /opt/ml, as in the container.
    has_private_mounts: bool = False
    #: Whether each server listens on a Unix socket in its folder instead of all network interfaces.
    has_private_addresses: bool = False
    #: Whether servers with network isolation run without a network.
    has_network_isolation: bool = False
    #: Whether models whose instance groups this machine cannot run are refused.
    is_exact: bool = False
    #: Replacements for backends that the server does not have; ``None`` for none.
    stand_ins: StandIns | None = None
    #: Folders of the whole run, which the supervisors delete when it ends.
    run_folders: tuple[Path, ...] = ()
    front_end_ports: FrontEndPorts = field(default_factory=FrontEndPorts)


@dataclass(slots=True)
class TritonServer(RunningContainer):
    """One container: a tritonserver in a private folder, started by a supervisor process."""

    settings: ServerSettings
    startup_timeout_seconds: float = _STARTUP_TIMEOUT_SECONDS
    port: int = field(init=False, default=_CONTAINER_PORT)
    #: The server's process id, which is also the id of its session and process group.
    process_id: int = field(init=False, default=0)
    #: Environment variables that adapt the server to this machine; the template overrides them.
    _fitted: dict[str, str] = field(init=False, default_factory=dict)
    #: Reserves ``port`` for this server if it listens on all interfaces.
    _reservation: socket.socket | None = field(init=False, default=None)
    _connection: ServerConnection | None = field(init=False, default=None)
    _http: HttpFrontEnd = field(init=False)
    _invocations: Destination | None = field(init=False, default=None)
    _supervisor: SupervisorProcess | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._http = HttpFrontEnd.of(self.container, self.settings.invocation_timeout_seconds)

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session that reaches this server."""
        return self._connected().session

    @property
    def invocations(self) -> Destination:
        """Where requests go: the SageMaker front end, or the one that generates in its place."""
        return self._invocations or Destination(self.session, f"{self.url}/invocations")

    @property
    def container_directory(self) -> Path:
        """The folder in place of ``/opt/ml``."""
        return self.directory / "opt" / "ml"

    @property
    def models_directory(self) -> Path:
        """The folder in place of ``/opt/ml/models`` of a multi-model container."""
        return self.container_directory / "models"

    def identity(self) -> Mapping[str, object]:
        """Return the id of the server's process."""
        return {"process_id": self.process_id}

    def memory_bytes(self) -> int:
        """Return how much memory the server and its child processes use."""
        return session_bytes(self.process_id)

    def shared_memory_bytes(self) -> int:
        """Return what the regions of its Python models take of ``/dev/shm``."""
        return region_bytes(self.shm_prefix)

    def prepare_target_model(self, model: Path, target_model: str) -> None:
        """Fit an unpacked model to this machine and to the backends of the server."""
        # Servers since 25.09 answer this, while the bundled server would wait forever.
        make_loadable(model, Target("sagemaker-multi-model"), self.settings.python, self._note)
        self.prepare_models(model, "", target_model)

    def load_url(self, directory: Path) -> str:
        """Return the ``url`` that loads the model in the folder ``model`` of ``directory``."""
        # If config.pbtxt is at the archive's root, the server uses the url's parent folder as the
        # repository, but only below /opt/ml/models. Elsewhere the parent folder itself has the same
        # effect as url: its only subfolder, "model", is the model.
        needs_parent = not self.settings.has_private_mounts
        has_root_config = (directory / "model" / "config.pbtxt").is_file()
        if has_root_config and needs_parent:
            return self.as_seen_by_server(directory)
        return self.as_seen_by_server(directory / "model")

    def as_seen_by_server(self, path: Path) -> str:
        """Return the server's path for ``path``, which is below ``container_directory``."""
        if not self.settings.has_private_mounts:
            return str(path)
        return str(CONTAINER_FOLDER / path.relative_to(self.container_directory))

    @property
    def shm_prefix(self) -> str:
        """The prefix of the names of this server's shared-memory regions."""
        return f"triton_{self.directory.name}"

    async def statistics(self) -> tuple[ModelStatistics, ...]:
        """Return what the server has counted of each model."""
        return await self._http.statistics()

    async def _open(self) -> None:
        await self._start_supervisor()
        await run_in_thread(self._prepare)

    def _connected(self) -> ServerConnection:
        from constructs_triton_tools.local.server.server_connection import ServerConnection

        if self._connection is None:
            folder = self.directory if self.settings.has_private_addresses else None
            self._connection = ServerConnection(folder, self.settings.invocation_timeout_seconds)
        return self._connection

    async def _close(self) -> None:
        # First, because the server waits seconds for an open connection before it ends.
        await self._http.close()
        if self._supervisor is not None:
            await self._supervisor.close()
        if self._connection is not None:
            await self._connection.close()
        self._release_port()

    async def _start_supervisor(self) -> None:
        self._supervisor = await SupervisorProcess.start(
            self.shm_prefix, self.directory, *self.settings.run_folders
        )

    def _prepare(self) -> None:
        python = self.settings.python
        make_backends(self.directory / "backends", self.settings.installation, python)
        if self.settings.stand_ins is not None:
            self.settings.stand_ins.place(self.directory / "backends")
        self.models_directory.mkdir(parents=True)
        (self.directory / "home").mkdir()
        model = self._model_folder
        if not self.container.is_multi_model:
            provide_models(self.container, model)
            name = self.container.environment.get("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "")
            make_loadable(model, Target(default_model=name or None), python, self._note)
            self.prepare_models(model, name)
        report_inference_type(self.container, self.container.image, model, self._note)

    def prepare_models(self, repository: Path, default_model: str, target_model: str = "") -> None:
        """Fit unpacked models to this machine and to the backends of the server."""
        settings = self.settings
        stand_ins = settings.stand_ins and settings.stand_ins.for_archive(
            target_model, self.container.image, used=self.stand_ins
        )
        installed = settings.installation.backend_names()
        processes = fit_models(
            repository, default_model, installed, stand_ins, self._note, is_exact=settings.is_exact
        )
        if processes:
            _expect_literal(self.directory)
        if not self.container.is_multi_model:
            self._fitted = fitted_environment(
                self.container.environment, processes, self._note, is_exact=settings.is_exact
            )

    async def _start_process(self) -> None:
        if not self.settings.has_private_addresses:
            self._reserve_port()
        request = await asyncio.to_thread(self._request)
        supervisor = self._supervisor
        assert supervisor is not None
        await supervisor.send(request)
        self.process_id = int(str(await supervisor.read_event("started") or 0))
        self.generation += 1
        self.launched.set()
        await self._wait_until_ready()
        model = request["environment"].get("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "")
        self._invocations = await self._http.generate_destination(model, self._note)
        self.is_ready = True

    async def _wait_until_ready(self) -> None:
        # Imported while the server starts.
        from constructs_triton_tools.local.http_session import wait_for_ping

        timeout = self.settings.startup_timeout_seconds or self.startup_timeout_seconds
        ping = wait_for_ping(
            self.session, self.url, lambda: raise_if_stub_ended(self.label, read_log(self.log))
        )
        why = await wait_until_ready(ping, self._end(), timeout)
        if why is not None:
            log = explain_failure(read_log(self.log), self.container.image)
            raise ContainerExitError(f"{self.label}: the Triton server {why}\n{log}")

    def _reserve_port(self) -> None:
        self._release_port()
        self._reservation = reserve_port()
        self.port = int(self._reservation.getsockname()[1])

    def _release_port(self) -> None:
        if self._reservation is not None:
            self._reservation.close()

    def _request(self) -> Mapping[str, Any]:
        """Return what the supervisor needs to start the server."""
        settings = self.settings
        command = self._command()
        if self.generation == 0:
            for message in command.messages:
                self._note(message)

        # Servers that share the network of this machine cannot all have their template's ports.
        has_network = not (self.container.is_isolated and settings.has_network_isolation)
        wanted = self._http.without_own_port(command.arguments)
        moved: list[FrontEnd] = []
        if has_network:
            moved = settings.front_end_ports.moved(self.label, wanted, settings.report)
        http_port = settings.front_end_ports.port_of(self.label, "http", wanted)

        mounted = self.container_directory if settings.has_private_mounts else None
        return {
            "argv": self._command_line(command, moved, http_port),
            "environment": self._server_environment(command, moved),
            "cwd": str(self.directory),
            "log": str(self.log),
            "mounted_models": None if mounted is None else str(mounted),
            "private_port": self.port if settings.has_private_addresses else None,
            "has_network": has_network,
            "grace_seconds": _GRACE_SECONDS,
        }

    @property
    def _model_folder(self) -> Path:
        """The folder in place of ``/opt/ml/model``."""
        return self.container_directory / "model"

    def _command(self) -> ServerCommand:
        """Return what the image's start script would run.

        Raises:
            ContainerExitError: the script would exit.
        """
        with explained_exit(self.label):
            return server_command(
                self._container_environment(),
                single=self._model_folder,
                multi=self.directory / "tmp" / "sagemaker",
            )

    def _command_line(
        self, command: ServerCommand, moved: Sequence[FrontEnd], http_port: int | None
    ) -> list[str]:
        """Return the arguments of the script, then those that fit the server to this machine.

        The server uses the last of several values of a flag.
        """
        installation = self.settings.installation
        arguments = fit_caches(
            command.arguments, installation.caches, self.label, self.settings.report
        )
        repository = f"--model-repository={self._model_folder}"
        seen = f"--model-repository={self.as_seen_by_server(self._model_folder)}"
        return [
            str(installation.executable),
            *(seen if argument == repository else argument for argument in arguments),
            f"--backend-directory={self.directory / 'backends'}",
            f"--backend-config=python,shm-region-prefix-name={self.shm_prefix}",
            *private_addresses(self.directory),
            *(f"--{front_end.name}-port={front_end.port}" for front_end in moved),
            *self._http.prepare(self.directory, http_port),
        ]

    def _server_environment(
        self, command: ServerCommand, moved: Sequence[FrontEnd]
    ) -> dict[str, str]:
        """Return the script's environment, with the programs and libraries of this machine."""
        installation = self.settings.installation
        python = self.settings.python
        folders = [str(python.bin), "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            "HOME": str(self.directory / "home"),
            **command.environment,
            **self.settings.front_end_ports.environment(moved),
            "PATH": os.pathsep.join(folders),
            "LD_LIBRARY_PATH": installation.library_path(python),
        }

    def _container_environment(self) -> dict[str, str]:
        """Return the container's environment, with values for this machine."""
        environment = {**self._fitted, **self.container.environment}
        environment["SAGEMAKER_BIND_TO_PORT"] = str(self.port)
        if self.container.is_multi_model:
            environment["SAGEMAKER_MULTI_MODEL"] = "true"
        return environment

    async def _end(self) -> object:
        assert self._supervisor is not None
        return await self._supervisor.read_event("ended")

    async def _clean_up(self, code: object) -> None:
        if code is None:
            await self._start_supervisor()
        how = "together with its supervisor" if code is None else f"with exit code {code}"
        self._note(f"the Triton server ended {how}; starting it again")
        # A server that ends by a signal writes which one, and where it was.
        self._note(f"the end of its log:\n{last_lines(read_end(self.log))}")


def _expect_literal(folder: Path) -> None:
    """Check that the Python backend, which starts models in a shell, can name this folder.

    Raises:
        LocalEndpointError: the shell would split the path, and the server wait forever.
    """
    found = changed_by_shell(str(folder))
    if found:
        raise LocalEndpointError(
            f"{folder.parent}: the Python backend starts models in a shell, where {found!r} splits "
            "or changes the path of the folder for temporary files; set TMPDIR to another folder"
        )
