"""A running container, whatever runs it: what the gateway needs from it,
and how it starts and stops.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_tools.local.model_statistics import ModelStatistics
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec

if TYPE_CHECKING:
    import aiohttp

_RESTART_DELAYS_SECONDS = (0.1, 1.0, 5.0, 15.0)
_Result = TypeVar("_Result")


async def wait_until_ready(
    ping: Coroutine[Any, Any, None], end: Coroutine[Any, Any, object], timeout_seconds: float
) -> str | None:
    """Return ``None`` when ``ping`` finishes, or why the container is not ready.

    ``end`` finishes when the container ends.
    """
    ready = asyncio.create_task(ping)
    ended = asyncio.create_task(end)
    try:
        done, _ = await asyncio.wait(
            {ended, ready}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if ended in done:
            return "ended before it was ready"
        if ready not in done:
            return f"did not answer /ping within {timeout_seconds:.0f} s"
        ready.result()
        return None
    finally:
        ready.cancel()
        ended.cancel()
        await asyncio.gather(ready, ended, return_exceptions=True)


async def start_again(start: Callable[[], Awaitable[None]], report: Callable[[str], None]) -> None:
    """Call ``start`` until it succeeds, and wait longer after each failure."""
    failures = 0
    while True:
        await asyncio.sleep(
            _RESTART_DELAYS_SECONDS[min(failures, len(_RESTART_DELAYS_SECONDS) - 1)]
        )
        try:
            return await start()
        except LocalEndpointError as error:
            failures += 1
            report(str(error))


async def finish(task: asyncio.Task[_Result]) -> _Result:
    """Wait for a thread even when cancelled, so that what it writes can be deleted afterwards."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # otherwise asyncio prints it when the task is deleted
        raise


class Destination(NamedTuple):
    """Where a request goes: the session that reaches the server, and the URL."""

    session: aiohttp.ClientSession
    url: str


class ContainerSettings(Protocol):
    """What all containers of a run share, whatever runs them."""

    @property
    def report(self) -> Callable[[str], None]:
        """Prints a line for the user."""


@dataclass(slots=True)
class RunningContainer(ABC):
    """The container of one variant or component: the bundled server,
    or an image that an engine runs.
    """

    label: str
    container: ContainerSpec
    settings: ContainerSettings
    #: A private folder, which is deleted with the container.
    directory: Path = field(init=False, default=Path())
    port: int = field(init=False, default=0)
    #: Set when the container has been started, and may not be ready yet.
    launched: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    is_ready: bool = field(init=False, default=False)
    #: Number of starts. Models that were loaded into an earlier process are not loaded any more.
    generation: int = field(init=False, default=0)
    #: Models that a stand-in runs, and what runs each of them.
    stand_ins: dict[str, str] = field(init=False, default_factory=dict)
    _watch: asyncio.Task[None] | None = field(init=False, default=None)
    #: Deletes ``directory``; if this process is killed, the supervisor or the next command does.
    _folder: ExitStack = field(init=False, default_factory=ExitStack)

    @property
    def url(self) -> str:
        """The start of the URL of each request that is sent with ``session``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    @abstractmethod
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session that reaches the container, from ``start`` to ``stop``."""

    @property
    def invocations(self) -> Destination:
        """Where a container of one model receives requests: ``/invocations``,
        or what answers like it.
        """
        return Destination(self.session, f"{self.url}/invocations")

    @property
    @abstractmethod
    def models_directory(self) -> Path:
        """The folder on this machine that the container sees as ``/opt/ml/models``."""

    @property
    def log(self) -> Path:
        """The container's output, which SageMaker writes to the container's log stream."""
        return self.directory / "server.log"

    def report(self, line: str) -> None:
        """Print a line for the user."""
        self.settings.report(line)

    def _note(self, line: str) -> None:
        self.report(f"{self.label}: {line}")

    @abstractmethod
    def identity(self) -> Mapping[str, object]:
        """Return what identifies the container to the operating system or the engine."""

    @abstractmethod
    def prepare_target_model(self, model: Path, target_model: str) -> None:
        """Fit a model of a multi-model container, which is unpacked in ``model``,
        to this machine.
        """

    @abstractmethod
    def load_url(self, directory: Path) -> str:
        """Return the ``url`` that loads the model in the folder ``model`` of ``directory``."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Return how much memory the container's processes use."""

    def shared_memory_bytes(self) -> int | None:
        """Return what Python models take of ``/dev/shm``; ``None`` if that cannot be seen here."""
        return None

    @abstractmethod
    async def statistics(self) -> tuple[ModelStatistics, ...]:
        """Return what the server has counted of each model since the model was loaded."""

    async def start(self) -> None:
        """Unpack the models, start the container, and wait until ``/ping`` answers 200.

        Raises:
            ContainerExitError: it does not start. The message contains the errors of its log.
        """
        self.directory = self._folder.enter_context(temporary_folder())
        try:
            await self._open()
            await self._start_process()
        except BaseException:
            await self.stop()
            raise
        self._watch = asyncio.create_task(self._restart_when_ended())

    async def stop(self) -> None:
        """Stop the container and delete what it leaves on this machine."""
        self.is_ready = False
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self._close()
        await asyncio.to_thread(self._folder.close)

    async def _restart_when_ended(self) -> None:
        """Start the container again when it has ended, as SageMaker does."""
        while True:
            code = await self._end()
            self.is_ready = False
            await self._clean_up(code)
            await start_again(self._start_process, self.settings.report)

    @abstractmethod
    async def _open(self) -> None:
        """Unpack the models, and start what stays until ``stop``."""

    @abstractmethod
    async def _close(self) -> None:
        """End the container, and what ``_open`` has started."""

    @abstractmethod
    async def _start_process(self) -> None:
        """Start the container once, and wait until it is ready."""

    @abstractmethod
    async def _end(self) -> object:
        """Wait until the container ends; return its exit code, if it is known."""

    @abstractmethod
    async def _clean_up(self, code: object) -> None:
        """Report that the container has ended, and remove what is left of it."""


class ContainerRunner(Protocol):
    """Creates the containers of a run."""

    def create(self, endpoint: EndpointSpec, variant: VariantSpec) -> RunningContainer:
        """Return the container of a variant, which is not started."""

    def available_bytes(self) -> int:
        """Return how much memory containers can use."""
