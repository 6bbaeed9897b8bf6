"""What the gateway needs from a running container, whatever runs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import aiohttp

from constructs_triton_tools.local.model_statistics import ModelStatistics
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec

__all__ = ["ContainerRunner", "Destination", "RunningContainer"]


class Destination(NamedTuple):
    """Where a request goes: the session that reaches the server, and the URL."""

    session: aiohttp.ClientSession
    url: str


class RunningContainer(Protocol):
    """The container of one variant or component: the bundled server, or an image that an engine runs.

    ``directory`` is a private folder that is deleted with the container. ``generation`` counts the starts.
    ``stand_ins`` are the models that a stand-in runs, with what runs each of them.
    """

    label: str
    container: ContainerSpec
    directory: Path
    is_ready: bool
    generation: int
    stand_ins: dict[str, str]

    @property
    def url(self) -> str:
        """The start of the URL of each request that is sent with ``session``."""

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session that reaches the container."""

    @property
    def invocations(self) -> Destination:
        """Where a container of one model receives requests: ``/invocations``, or what answers like it."""

    @property
    def models_directory(self) -> Path:
        """The folder on this machine that the container sees as ``/opt/ml/models``."""

    @property
    def log(self) -> Path:
        """The file with the container's output."""

    def report(self, line: str) -> None:
        """Print a line for the user."""

    def identity(self) -> Mapping[str, object]:
        """What identifies the container to the operating system or the engine."""

    def prepare_target_model(self, model: Path, target_model: str) -> None:
        """Fit a model of a multi-model container, which is unpacked in ``model``, to this machine.

        Raises:
            LocalEndpointError: the model cannot run on this machine.
            MissingDependencyError: a package that the model needs is not installed.
        """

    def load_url(self, directory: Path) -> str:
        """Return the ``url`` that loads the model in the folder ``model`` of ``directory``."""

    def memory_bytes(self) -> int:
        """Return how much memory the container's processes use."""

    async def statistics(self) -> tuple[ModelStatistics, ...]:
        """Return what the server has counted of each model since the model was loaded.

        Raises:
            LocalEndpointError: the server does not answer, or its statistics cannot be reached.
        """

    async def start(self) -> None:
        """Start the container and wait until ``/ping`` answers 200.

        Raises:
            LocalEndpointError: it does not start.
        """

    async def stop(self) -> None:
        """Stop the container and delete what it leaves on this machine."""


class ContainerRunner(Protocol):
    """Creates the containers of a run."""

    def create(self, endpoint: EndpointSpec, variant: VariantSpec) -> RunningContainer:
        """Return the container of a variant, which is not started."""

    def available_bytes(self) -> int:
        """Return how much memory containers can use."""
