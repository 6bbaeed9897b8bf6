"""Simulates which models a multi-model endpoint keeps loaded, and what that costs its callers.

AWS says that SageMaker sends requests to an instance that has the model, and unloads unused models
when it needs memory; it describes the order only as similar to "least recently used". The
simulation uses this order, with one copy of each model. It does not simulate how requests slow each
other down, copies of popular models on further instances, and the network. Source: SageMaker
developer guide, "How multi-model endpoints work".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_tools.planning.csv_table import Column, Row, parse_text, raise_for, read_rows
from constructs_triton_tools.planning.quantities import read_positive
from triton_model_check.memory.estimate import MemoryEstimate
from triton_model_check.memory.room import Room, models_at_once
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

#: Requests before this share of a simulation fill the memory and are not counted.
_WARM_UP = 0.25
_FEWEST_REQUESTS = 100_000
#: Requests for each model, so that rarely called ones are called at all.
_REQUESTS_FOR_EACH = 40
_COLUMNS = (
    Column(("model",), parse_text),
    Column(("memory_mib",), read_positive),
    Column(("load_seconds",), read_positive),
    Column(("count",), read_positive, optional=True),
    Column(("requests_per_minute", "weight"), read_positive, optional=True),
    Column(("latency_ms",), read_positive, optional=True),
)
#: Far beyond what an endpoint is used for, and still simulated in seconds.
_MOST_MODELS = 20_000


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model of a multi-model endpoint.

    Args:
        name: Name in messages.
        memory_mib: Memory of the loaded model, of the GPU or of the instance.
        load_seconds: Seconds from the first request until the model answers, with its download.
        weight: Share of the requests, relative to the other models.
        latency_ms: Latency of a request when the model is loaded.
    """

    name: str
    memory_mib: float
    load_seconds: float
    weight: float = 1.0
    latency_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class CacheResult:
    """What the callers of a number of instances experience.

    Args:
        instances: Number of instances.
        loaded: Models in memory, on average over the counted requests.
        hit_rate: Share of requests whose model was loaded; CloudWatch's ``ModelCacheHit``.
        latency_ms: Latency in milliseconds by percentile (50, 95, 99), loading included.
        cold_latency_ms: Median latency of requests whose model was not loaded; ``None`` if there
            were none.
        loads_per_minute: How often a model is loaded.
    """

    instances: int
    loaded: float
    hit_rate: float
    latency_ms: dict[int, float]
    cold_latency_ms: float | None
    loads_per_minute: float


def read_models(path: str | PathLike[str], *, zipf: float | None = None) -> list[CachedModel]:
    """Read the models of a file.

    Columns: ``model``, ``memory_mib``, ``load_seconds``, and optionally ``count`` (models like this
    one, default 1), ``requests_per_minute`` (of each, default 1) and ``latency_ms`` (if loaded,
    default 0).

    Args:
        path: Path of the CSV file.
        zipf: Exponent of Zipf's law: the model at place n gets 1/n**zipf of the requests of the
            first one. Default: the requests are those of the file.

    Raises:
        InvalidValueError: a value is not valid, or there are more than 20,000 models.
    """
    rows = read_rows(path, _COLUMNS)
    raise_for(list(chain.from_iterable(map(_errors, rows))))
    models = list(chain.from_iterable(map(_models, rows)))
    if len(models) > _MOST_MODELS:
        raise InvalidValueError(
            f"{path}: must have at most {_MOST_MODELS:,} models, got {len(models):,}; split it"
        )
    if zipf is None:
        return models
    return [
        CachedModel(
            model.name, model.memory_mib, model.load_seconds, 1 / rank**zipf, model.latency_ms
        )
        for rank, model in enumerate(models, 1)
    ]


@dataclass(frozen=True, slots=True)
class CachedRepository:
    """The archives of a repository, and the memory that they share on each instance.

    Args:
        models: An archive each, with what it takes at the place.
        place: The place that fills first, such as ``GPU 0``.
        memory_mib: Memory for models at the place.
    """

    models: list[CachedModel]
    place: str
    memory_mib: float


def models_of_repository(
    path: Path,
    instance_type: InstanceType,
    load_seconds: float,
    *,
    memory_fraction: float = 1.0,
    zipf: float | None = None,
) -> CachedRepository:
    """Return the archives of a repository, as ``constructs-triton memory`` counts them.

    They count at the place that fills first: a GPU, or the host. An archive that takes nothing
    there stays loaded.

    Args:
        path: Folder of the models.
        instance_type: Where they run.
        load_seconds: Seconds from the first request until a model answers, with its download.
        memory_fraction: Part of the memory that models and server may use.
        zipf: Exponent of Zipf's law, in the order of the names. Default: equal requests.

    Raises:
        InvalidValueError: the memory of a model is not known, and ``triton-models.toml`` does not
            declare it.
    """
    target = Target.named("sagemaker-multi-model", instance_type=instance_type.name)
    estimates = ModelRepository.from_directory(path).memory(target)
    _refuse_unknown(path, estimates)
    rooms = models_at_once(estimates)
    if not rooms:
        raise InvalidValueError(
            f"{path}: no model takes memory of {instance_type}; name a folder of models"
        )
    room = max(rooms, key=lambda each: each.size / each.limit)
    sizes = {archive.model: archive.size / 2**20 for archive in room.archives}
    names = [estimate.models[0] for estimate in estimates]
    models = [
        CachedModel(name, sizes.get(name, 0.0), load_seconds, _weight(rank, zipf))
        for rank, name in enumerate(names, 1)
    ]
    return CachedRepository(models, room.place, _for_models(room, memory_fraction))


def _refuse_unknown(path: Path, estimates: Sequence[MemoryEstimate]) -> None:
    reason = next(chain.from_iterable(estimate.not_counted for estimate in estimates), None)
    if reason is not None:
        name = reason.partition(":")[0]
        raise InvalidValueError(
            f"{path}: the memory of {reason}; declare it: write {name} = {{ gpu_mib = 300, "
            "host_mib = 200 } below [memory] in triton-models.toml there"
        )


def _weight(rank: int, zipf: float | None) -> float:
    return 1.0 if zipf is None else 1 / rank**zipf


def _for_models(room: Room, memory_fraction: float) -> float:
    return (room.limit * memory_fraction - room.server) / 2**20


def _errors(row: Row) -> list[str]:
    count = row.cells.get("count")
    if count is not None and not (count == int(count) and count <= _MOST_MODELS):
        place = f'{row.place}, column "count"'
        return [
            (
                f"{place}: must be a whole number up to {_MOST_MODELS:,}, "
                f"got {count}; write how many models"
            )
        ]
    return []


def _models(row: Row) -> list[CachedModel]:
    cells = row.cells
    count = int(cells.get("count") or 1)
    names = [cells["model"]]
    if count > 1:
        names = [f"{cells['model']}-{number}" for number in range(1, count + 1)]
    return [
        CachedModel(
            name,
            float(cells["memory_mib"]),
            float(cells["load_seconds"]),
            float(cells.get("requests_per_minute") or 1),
            float(cells.get("latency_ms") or 0),
        )
        for name in names
    ]


def simulate_cache(
    models: Sequence[CachedModel],
    *,
    memory_mib: float,
    instances: int,
    requests_per_second: float,
    seed: int = 0,
) -> CacheResult:
    """Simulate requests at random times for models by their weights.

    Args:
        models: The models of the endpoint.
        memory_mib: Memory for models on each instance.
        instances: Number of instances.
        requests_per_second: Rate of all requests together.
        seed: The same seed gives the same result.

    Raises:
        InvalidValueError: a model is larger than the memory.
    """
    for model in models:
        if model.memory_mib > memory_mib:
            raise InvalidValueError(
                f'model "{model.name}": must fit into {memory_mib:,.0f} MiB of memory, '
                f"got {model.memory_mib:,.0f} MiB; use a larger instance type"
            )

    # Poisson arrivals: the times between requests are exponential.
    count = max(_FEWEST_REQUESTS, _REQUESTS_FOR_EACH * len(models))
    random = np.random.default_rng(seed)
    weights = np.array([model.weight for model in models])
    chosen = random.choice(len(models), count, p=weights / weights.sum())
    times = np.cumsum(random.exponential(1 / requests_per_second, count))

    fleet = _Fleet(models, memory_mib, instances)
    requests = zip(chosen.tolist(), times.tolist(), strict=True)
    calls = np.array([fleet.call(model, time) for model, time in requests])

    # The first requests find empty caches, which a running endpoint does not have.
    first = int(count * _WARM_UP)
    own_latency = np.array([model.latency_ms for model in models])[chosen]
    return _result(instances, calls[first:], own_latency[first:], times[first:])


class _Fleet:
    """The instances, each with its loaded models in the order of their last use."""

    def __init__(self, models: Sequence[CachedModel], memory_mib: float, instances: int) -> None:
        self.models = models
        self.free = [memory_mib] * instances
        self.loaded: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(instances)]
        self.place: dict[int, int] = {}
        self.used = [0.0] * len(models)
        self.ready = [0.0] * len(models)

    def call(self, model: int, now: float) -> tuple[float, bool, int]:
        """Return how long a request waits for its model, whether it loads it, and how many are
        loaded.

        A request that comes while the model loads waits for the rest of that time.
        """
        is_load = model not in self.place
        if is_load:
            self._load(model, now)
        self.loaded[self.place[model]].move_to_end(model)
        self.used[model] = now
        return max(0.0, self.ready[model] - now), is_load, len(self.place)

    def _load(self, model: int, now: float) -> None:
        needed = self.models[model].memory_mib
        chosen = max(range(len(self.free)), key=self.free.__getitem__)
        if self.free[chosen] < needed:
            chosen = min(range(len(self.free)), key=self._last_use_of_oldest)
        while self.free[chosen] < needed:
            oldest, _ = self.loaded[chosen].popitem(last=False)
            self.free[chosen] += self.models[oldest].memory_mib
            del self.place[oldest]
        self.free[chosen] -= needed
        self.loaded[chosen][model] = None
        self.place[model] = chosen
        self.ready[model] = now + self.models[model].load_seconds

    def _last_use_of_oldest(self, instance: int) -> float:
        oldest = next(iter(self.loaded[instance]), None)
        return 0.0 if oldest is None else self.used[oldest]


def _result(
    instances: int, calls: NDArray[Any], own_latency: NDArray[Any], times: NDArray[Any]
) -> CacheResult:
    waits, is_load, loaded = calls.T
    latency = own_latency + waits * 1000
    is_cold = waits > 0
    minutes = (times[-1] - times[0]) / 60
    return CacheResult(
        instances=instances,
        loaded=float(loaded.mean()),
        hit_rate=float(1 - is_cold.mean()),
        latency_ms={percent: float(np.percentile(latency, percent)) for percent in (50, 95, 99)},
        cold_latency_ms=float(np.median(latency[is_cold])) if is_cold.any() else None,
        loads_per_minute=float(is_load.sum() / minutes),
    )
