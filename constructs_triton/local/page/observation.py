"""Reads the state of a run for its page: servers, models, memory, statistics, and why something fails.

Nothing is read while no page is open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from constructs_triton.errors import InvalidValueError, LocalEndpointError
from constructs_triton.facts.images import version_of_image
from constructs_triton.local.gateway.inference_components import LocalComponent
from constructs_triton.local.gateway.local_variant import LocalVariant
from constructs_triton.local.gateway.multi_model import MultiModelContainer
from constructs_triton.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton.local.model_statistics import ModelStatistics
from constructs_triton.local.page.figures import Figures
from constructs_triton.local.page.log_tail import LogTail, Messages
from constructs_triton.local.server.memory import stub_bytes
from constructs_triton.local.server.server_log import read_end
from constructs_triton.local.sources.inference_type import DEFAULT_MODEL
from constructs_triton.local.sources.specs import ContainerSpec
from constructs_triton.operations.diagnosis import Diagnosis, Message, diagnose_log, recognize

__all__ = ["Observer", "targets_of"]

_MEMORY_SECONDS = 5.0
#: How long statistics are kept while no call arrives: each reading writes lines to a verbose log.
_STATISTICS_SECONDS = 10.0
_FRESH_SECONDS = 0.8
#: Pause after a reading, in times of its duration: the server answers for each model by itself.
_LEAST_PAUSE = 10
_MOST_TARGETS = 1000


@dataclass(slots=True)
class _Server:
    """What is known of one server besides its state."""

    log: LogTail = field(default_factory=LogTail)
    statistics: Sequence[ModelStatistics] = ()
    no_statistics: str = ""
    counted_at: float = -_STATISTICS_SECONDS
    counting_seconds: float = 0.0
    counted: tuple[object, ...] = ()
    memory_bytes: int = 0
    model_bytes: Mapping[str, int] = field(default_factory=dict)
    measured_at: float = 0.0
    explained: tuple[object, ...] = ()
    diagnoses: Sequence[Mapping[str, object]] = ()


class Observer:
    """Describes a run. ``endpoints`` may change while it runs."""

    def __init__(
        self, endpoints: Mapping[str, RunningEndpoint], figures: Figures, messages: Messages
    ) -> None:
        self._endpoints = endpoints
        self.figures = figures
        self.messages = messages
        self._servers: dict[Path, _Server] = {}
        self._lock = asyncio.Lock()
        self._read_at = 0.0
        self._state: dict[str, object] = {}

    async def state(self) -> dict[str, object]:
        """Return the state of all endpoints; several pages share one reading."""
        async with self._lock:
            if time.monotonic() - self._read_at > _FRESH_SECONDS:
                self._state = await self._read()
                self._read_at = time.monotonic()
            return self._state

    async def _read(self) -> dict[str, object]:
        self.figures.update()
        endpoints = list(self._endpoints.values())
        running = {each.server.directory for endpoint in endpoints for each in endpoint.all_servers()}
        self._servers = {folder: known for folder, known in self._servers.items() if folder in running}
        return {"endpoints": [await self._endpoint(each) for each in endpoints]}

    async def _endpoint(self, endpoint: RunningEndpoint) -> dict[str, object]:
        servers = [await self._server(endpoint, each) for each in endpoint.all_servers()]
        return {
            "name": endpoint.spec.name,
            "stack": endpoint.spec.stack,
            "is_asynchronous": endpoint.spec.asynchronous is not None,
            "servers": servers,
        }

    async def _server(self, endpoint: RunningEndpoint, running: LocalVariant) -> dict[str, object]:
        known = self._servers.setdefault(running.server.directory, _Server())
        await asyncio.to_thread(self._measure, running, known)
        names = await asyncio.to_thread(targets_of, running)
        targets = [self._target(endpoint, running, *each) for each in list(names.items())[:_MOST_TARGETS]]
        await _count(running, known, [each["calls"] for each in targets])
        await asyncio.to_thread(_explain, running, known, [each["failed"] for each in targets])
        state = _state_of(running)
        return {
            "name": running.spec.name,
            "kind": _kind(endpoint, running),
            "state": state,
            "weight": running.spec.weight,
            "is_multi_model": running.multi_model is not None,
            "starts": running.server.generation,
            "memory_bytes": known.memory_bytes,
            "no_statistics": known.no_statistics,
            "targets": targets,
            "targets_left_out": len(names) - len(targets),
            "stand_ins": dict(running.server.stand_ins),
            "models": [_model(each, known.model_bytes) for each in known.statistics],
            "diagnoses": known.diagnoses,
            **running.server.identity(),
        }

    def _measure(self, running: LocalVariant, known: _Server) -> None:
        """Read the log, and from time to time the memory, which takes longer."""
        known.log.read(running.server.log)
        if time.monotonic() - known.measured_at > _MEMORY_SECONDS:
            known.measured_at = time.monotonic()
            known.memory_bytes = running.server.memory_bytes()
            session = running.server.identity().get("process_id")
            found = stub_bytes(session) if isinstance(session, int) else {}
            known.model_bytes = _by_model(found, _folders(running))

    def _target(
        self, endpoint: RunningEndpoint, running: LocalVariant, name: str, model: str
    ) -> dict[str, Any]:
        """Return the state and figures of what callers choose: a variant, component or target model."""
        figures = self.figures.target(endpoint.spec.name, name)
        has_failed = _has_failed(running, name, figures["failed_status"])
        state = "failed" if has_failed else _target_state(running, name)
        failed = str(figures["failed"]) if has_failed else ""
        return {
            "name": name,
            "model": model,
            "state": state,
            **figures,
            "failed": failed,
            "diagnosis": _recognized(failed),
        }

    def log_after(self, numbers: Mapping[str, int]) -> Iterator[tuple[str, list[tuple[int, str, bool]]]]:
        """Yield the new lines of each log, by the label of its server, and of the run's messages."""
        labels = {
            each.server.directory: each.server.label
            for endpoint in self._endpoints.values()
            for each in endpoint.all_servers()
        }
        for folder, known in self._servers.items():
            label = labels.get(folder, "")
            yield label, known.log.after(numbers.get(label, 0))
        yield "local up", self.messages.after(numbers.get("local up", 0))


def targets_of(running: LocalVariant) -> dict[str, str]:
    """Return what callers can choose of a server, with the model that it is; empty if unknown.

    That is each target model, with its name in ``index.json``, or the server's own name, with its only model.
    """
    container = running.server.container
    if running.multi_model is not None:
        names = _names_of(running.multi_model, container)
        targets = dict.fromkeys((*running.multi_model.archive_names(), *running.multi_model.loaded_models))
        return {target: names.get(target, "") for target in targets}
    try:
        found = [each.name for each in (running.server.models_directory.parent / "model").iterdir()]
    except OSError:  # the server is being replaced
        found = []
    only = found[0] if len(found) == 1 else ""
    return {running.spec.name: container.environment.get(DEFAULT_MODEL) or only}


def _names_of(models: MultiModelContainer, container: ContainerSpec) -> dict[str, str]:
    """Return the names of archives. Those of a deployed endpoint are not read again and again."""
    try:
        index = models.index() if container.fetch_archive is None else None
    except InvalidValueError:
        index = None
    return {} if index is None else {archive: name for name, archive in index.target_models.items()}


async def _count(running: LocalVariant, known: _Server, calls: Sequence[int]) -> None:
    """Read the server's statistics if there were calls, a start, or none for some time."""
    now = (running.server.generation, running.server.is_ready, *calls)
    wait = _STATISTICS_SECONDS if now == known.counted else _LEAST_PAUSE * known.counting_seconds
    if time.monotonic() - known.counted_at < wait:
        return
    known.counted, known.counted_at = now, time.monotonic()
    known.statistics, known.no_statistics = (), ""
    if not running.server.is_ready:
        known.no_statistics = "the server is not ready"
        return
    try:
        known.statistics = await running.server.statistics()
    except LocalEndpointError as error:
        known.no_statistics = str(error)
    known.counting_seconds = time.monotonic() - known.counted_at


def _kind(endpoint: RunningEndpoint, running: LocalVariant) -> str:
    if isinstance(running, LocalComponent):
        return "component"
    return "variant" if running.spec.name in endpoint.variants else "shadow"


def _state_of(running: LocalVariant) -> str:
    if not running.server.is_ready:
        return "starting"
    if isinstance(running, LocalComponent) and running.copies.are_zero:
        return "zero copies"
    return "ready"


def _has_failed(running: LocalVariant, name: str, status: object) -> bool:
    """Whether the status of an error is the model's fault: with 4xx a loaded model refused one request."""
    if not isinstance(status, int):
        return False
    is_loaded = running.multi_model is None or name in running.multi_model.loaded_models
    return status == 0 or status >= 500 or not is_loaded


def _target_state(running: LocalVariant, name: str) -> str:
    state = _state_of(running)
    if running.multi_model is None or state != "ready":
        return state
    if name in running.multi_model.loaded_models:
        return "ready"
    return "loading" if name in running.multi_model.loading_models else "not loaded"


def _model(statistics: ModelStatistics, bytes_by_model: Mapping[str, int]) -> dict[str, object]:
    """Return the counters of a model; durations are milliseconds summed over its requests."""
    compute = statistics.compute_input.nanoseconds + statistics.compute_infer.nanoseconds
    return {
        "name": statistics.name,
        "version": statistics.version,
        "memory_bytes": bytes_by_model.get(statistics.name),
        "requests": statistics.success.count,
        "failures": statistics.failure.count,
        "queue_ms": statistics.queue.nanoseconds / 1e6,
        "compute_ms": (compute + statistics.compute_output.nanoseconds) / 1e6,
        "batches": {str(size): count for size, count in sorted(statistics.batches.items())},
    }


def _folders(running: LocalVariant) -> dict[str, str]:
    """Return the loaded target models by the name of the folder that has their files."""
    container = running.multi_model
    if container is None:
        return {}
    return {container.unpacked(name).parent.name: name for name in container.loaded_models}


def _by_model(bytes_by_path: Mapping[str, int], folders: Mapping[str, str]) -> dict[str, int]:
    """Return sizes by model, from paths that end ``MODEL/1/model.py``; or by the target model of a folder."""
    sizes: dict[str, int] = {}
    for path, size in bytes_by_path.items():
        parts = Path(path).parts
        named = next((folders[part] for part in parts if part in folders), "")
        name = named or (parts[-3] if len(parts) > 2 else "")
        sizes[name] = sizes.get(name, 0) + size
    return sizes


def _recognized(failed: str) -> Mapping[str, object] | None:
    found = recognize(Message(failed, "the response", is_log=True)) if failed else None
    return None if found is None else found.to_dict()


def _explain(running: LocalVariant, known: _Server, failed: Sequence[str]) -> None:
    """Search the log again when the server started again or another call failed."""
    now = (running.server.generation, running.server.is_ready, *failed)
    if now == known.explained:
        return
    known.explained = now
    is_failing = any(failed) or running.server.generation > 1 or not running.server.is_ready
    log = read_end(running.server.log) if is_failing else ""
    found: list[Diagnosis] = diagnose_log(
        log, "the server's log", triton_version=version_of_image(running.server.container.image)
    )
    known.diagnoses = [each.to_dict() for each in found]
