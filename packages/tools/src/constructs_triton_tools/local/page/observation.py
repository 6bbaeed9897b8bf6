"""Reads the state of a run for its page: servers, models, memory, statistics, and why something
fails.

Nothing is read while no page is open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_tools.local.gateway.inference_components import LocalComponent, LocalVariant
from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.model_statistics import ModelStatistics
from constructs_triton_tools.local.page.call_record import failed_step
from constructs_triton_tools.local.page.figures import Figures
from constructs_triton_tools.local.page.log_tail import LogTail, Messages
from constructs_triton_tools.local.page.memory_estimate import RunEstimate, estimate_of, rows_of
from constructs_triton_tools.local.page.user_files import UserFiles
from constructs_triton_tools.local.server.memory import count_gpus, gpu_bytes, stub_bytes
from constructs_triton_tools.local.server.server_log import read_end
from constructs_triton_tools.local.sources.inference_type import DEFAULT_MODEL
from constructs_triton_tools.local.sources.specs import ContainerSpec
from constructs_triton_tools.operations.diagnosis import Diagnosis, Message, diagnose_log, recognize
from triton_model_check.facts.images import version_of_image

_MEMORY_SECONDS = 5.0
#: How long statistics are kept while no call arrives: each reading writes lines to a verbose log.
_STATISTICS_SECONDS = 10.0
_FRESH_SECONDS = 0.8
#: Pause after a reading, in times of its duration: the server answers for each model by itself.
_LEAST_PAUSE = 10
#: How long a state waits for statistics. A server that hangs must not keep the page from showing
#: it.
_PATIENCE_SECONDS = 0.3
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
    counting: asyncio.Task[None] | None = None
    memory_bytes: int = 0
    shared_bytes: int | None = None
    model_bytes: Mapping[str, int] = field(default_factory=dict)
    gpu_bytes: Mapping[int, int] = field(default_factory=dict)
    estimated: tuple[object, ...] = ()
    estimate: RunEstimate | None = None
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
        running: set[Path] = set()
        for endpoint in endpoints:
            running.update(served.server.directory for served in endpoint.all_servers())
        self._servers = {
            folder: known for folder, known in self._servers.items() if folder in running
        }
        states = [await self._endpoint(endpoint) for endpoint in endpoints]
        return {"endpoints": sorted(states, key=_has_no_failed_target)}

    async def _endpoint(self, endpoint: RunningEndpoint) -> dict[str, object]:
        servers = [await self._server(endpoint, server) for server in endpoint.all_servers()]
        return {
            "name": endpoint.spec.name,
            "stack": endpoint.spec.stack,
            "is_asynchronous": endpoint.spec.asynchronous is not None,
            **self.figures.endpoint(endpoint.spec.name),
            "servers": servers,
        }

    async def _server(self, endpoint: RunningEndpoint, running: LocalVariant) -> dict[str, object]:
        known = self._servers.setdefault(running.server.directory, _Server())
        await asyncio.to_thread(self._measure, running, known)
        names = await asyncio.to_thread(targets_of, running)
        targets = [self._target(endpoint, running, known, *each) for each in names.items()]
        targets = sorted(targets, key=_rank)[:_MOST_TARGETS]
        await _count(running, known, [target["calls"] for target in targets])
        await asyncio.to_thread(_explain, running, known, [target["failed"] for target in targets])
        state = _state_of(running)
        return {
            "name": running.spec.name,
            "kind": _kind(endpoint, running),
            "state": state,
            "weight": running.spec.weight,
            "is_multi_model": running.multi_model is not None,
            "starts": running.server.generation,
            "memory_bytes": known.memory_bytes,
            "memory": _memory(running, known),
            "no_statistics": known.no_statistics,
            "targets": targets,
            "targets_left_out": len(names) - len(targets),
            "stand_ins": dict(running.server.stand_ins),
            "models": [_model(model, known.model_bytes) for model in known.statistics],
            "diagnoses": known.diagnoses,
            **running.server.identity(),
        }

    def _measure(self, running: LocalVariant, known: _Server) -> None:
        """Read the log, and from time to time the memory, which takes longer."""
        known.log.read(running.server.log)
        if time.monotonic() - known.measured_at > _MEMORY_SECONDS:
            known.measured_at = time.monotonic()
            known.memory_bytes = running.server.memory_bytes()
            known.shared_bytes = running.server.shared_memory_bytes()
            session = running.server.identity().get("process_id")
            found = stub_bytes(session) if isinstance(session, int) else {}
            known.model_bytes = _by_model(found, _folders(running))
            known.gpu_bytes = gpu_bytes(session) if isinstance(session, int) else {}
            _estimate(running, known)

    def _target(
        self,
        endpoint: RunningEndpoint,
        running: LocalVariant,
        known: _Server,
        name: str,
        model: str,
    ) -> dict[str, Any]:
        """Return the state and figures of what callers choose: a variant,
        component or target model.
        """
        figures = self.figures.target(endpoint.spec.name, name)
        state = _target_state(running, name, figures)
        return {
            "name": name,
            "model": model,
            **figures,
            "state": state,
            **_failure(running, known, figures),
        }

    def log_after(
        self, numbers: Mapping[str, int]
    ) -> Iterator[tuple[str, list[tuple[int, str, bool]]]]:
        """Yield the new lines of each log, by the label of its server,
        and of the run's messages.
        """
        labels: dict[Path, str] = {}
        for endpoint in self._endpoints.values():
            for served in endpoint.all_servers():
                labels[served.server.directory] = served.server.label
        for folder, known in self._servers.items():
            label = labels.get(folder, "")
            yield label, known.log.after(numbers.get(label, 0))
        yield "local up", self.messages.after(numbers.get("local up", 0))


def targets_of(running: LocalVariant) -> dict[str, str]:
    """Return what callers can choose of a server, with the model that it is; empty if unknown.

    That is each target model, with its name in ``index.json``, or the server's own name, with its
    only model.
    """
    container = running.server.container
    if running.multi_model is not None:
        names = _names_of(running.multi_model, container)
        targets = dict.fromkeys(
            (*running.multi_model.archive_names(), *running.multi_model.loaded_models)
        )
        return {target: names.get(target, "") for target in targets}
    try:
        found = [path.name for path in (running.server.models_directory.parent / "model").iterdir()]
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
    is_counting = known.counting is not None and not known.counting.done()
    if not is_counting and time.monotonic() - known.counted_at >= wait:
        known.counted = now
        known.counted_at = time.monotonic()
        known.counting = asyncio.create_task(_read_statistics(running, known))
    if known.counting is not None and not known.counting.done():
        await asyncio.wait({known.counting}, timeout=_PATIENCE_SECONDS)
        if not known.counting.done():
            known.no_statistics = "the server has not answered yet"


async def _read_statistics(running: LocalVariant, known: _Server) -> None:
    found: Sequence[ModelStatistics] = ()
    reason = "" if running.server.is_ready else "the server is not ready"
    if not reason:
        try:
            found = await running.server.statistics()
        except LocalEndpointError as error:
            reason = str(error)
    known.statistics = found
    known.no_statistics = reason
    known.counting_seconds = time.monotonic() - known.counted_at


def _estimate(running: LocalVariant, known: _Server) -> None:
    """Estimate the memory of the models again if others are loaded, or the server was started."""
    container = running.multi_model
    loaded = () if container is None else tuple(sorted(container.loaded_models))
    now = (running.server.generation, running.server.is_ready, loaded)
    if now != known.estimated:
        known.estimated = now
        known.estimate = estimate_of(running, count_gpus())


def _memory(running: LocalVariant, known: _Server) -> dict[str, object]:
    """Return the estimate beside what is measured, and the instance types to ask about."""
    estimate = known.estimate
    if estimate is None:
        return {"places": [], "not_counted": [], "instance_types": []}
    return {
        "places": rows_of(estimate, known.memory_bytes, known.gpu_bytes, known.shared_bytes),
        "not_counted": estimate.not_counted,
        "instance_types": running.spec.instance_types,
    }


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


def _target_state(running: LocalVariant, name: str, figures: Mapping[str, Any]) -> str:
    """Return the state of a target.

    Only calls that failed through no fault of their caller count.
    """
    if figures["failed"] is not None:
        return "failed"
    state = _state_of(running)
    if (
        state == "ready"
        and running.multi_model is not None
        and name not in running.multi_model.loaded_models
    ):
        state = "loading" if name in running.multi_model.loading_models else "not loaded"
    return "some failed" if state == "ready" and figures["recent_failures"] else state


def _failure(
    running: LocalVariant, known: _Server, figures: Mapping[str, Any]
) -> dict[str, object]:
    """Return what is known of a target's last call, if that failed:
    in the names of the user's files.
    """
    message = figures["failed"]
    if message is None:
        return {"failed": "", "place": "", "failed_step": "", "diagnosis": None}
    files = UserFiles.of(running)
    named = files.name(message)
    return {
        "failed": named,
        "place": files.place(message),
        "failed_step": failed_step(message, [model.name for model in known.statistics]),
        "diagnosis": _recognized(named),
    }


def _rank(target: Mapping[str, Any]) -> int:
    """Return the place of a target: those that fail are before the others,
    which keep their order.
    """
    return 0 if target["state"] == "failed" or target["recent_failures"] else 1


def _has_no_failed_target(endpoint: Mapping[str, Any]) -> bool:
    """Whether no target of an endpoint fails. Endpoints where one does are shown first."""
    targets = chain.from_iterable(server["targets"] for server in endpoint["servers"])
    return all(_rank(target) for target in targets)


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
    """Return sizes by model, from paths that end ``MODEL/1/model.py``;
    or by the target model of a folder.
    """
    sizes: dict[str, int] = {}
    for path, size in bytes_by_path.items():
        parts = Path(path).parts
        named = next((folders[part] for part in parts if part in folders), "")
        name = named or (parts[-3] if len(parts) > 2 else "")
        sizes[name] = sizes.get(name, 0) + size
    return sizes


def _recognized(failed: str) -> Mapping[str, object] | None:
    found = recognize(Message(failed, "the response", is_log=True))
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
        UserFiles.of(running).name(log),
        "the server's log",
        triton_version=version_of_image(running.server.container.image),
    )
    known.diagnoses = [diagnosis.to_dict() for diagnosis in found]
