"""Simulates which models a multi-model endpoint keeps loaded, and what that costs its callers.

AWS says that SageMaker sends requests to an instance that has the model, and unloads unused models when it
needs memory; it describes the order only as similar to "least recently used". The simulation uses this order,
with one copy of each model. It does not simulate how requests slow each other down, copies of popular models
on further instances, and the network. Source: SageMaker developer guide, "How multi-model endpoints work".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton.errors import InvalidValueError

__all__ = ["CacheResult", "CachedModel", "simulate_cache"]

#: Requests before this share of a simulation fill the memory and are not counted.
_WARM_UP = 0.25
_FEWEST_REQUESTS = 100_000
#: Requests for each model, so that rarely called ones are called at all.
_REQUESTS_FOR_EACH = 40


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
        cold_latency_ms: Median latency of requests whose model was not loaded; ``None`` if there were none.
        loads_per_minute: How often a model is loaded.
    """

    instances: int
    loaded: float
    hit_rate: float
    latency_ms: dict[int, float]
    cold_latency_ms: float | None
    loads_per_minute: float


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
    count = max(_FEWEST_REQUESTS, _REQUESTS_FOR_EACH * len(models))
    random = np.random.default_rng(seed)
    weights = np.array([model.weight for model in models])
    chosen = random.choice(len(models), count, p=weights / weights.sum())
    times = np.cumsum(random.exponential(1 / requests_per_second, count))
    fleet = _Fleet(models, memory_mib, instances)
    calls = np.array([fleet.call(*each) for each in zip(chosen.tolist(), times.tolist(), strict=True)])
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
        """Return how long a request waits for its model, whether it loads it, and how many are loaded.

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
    latency, is_cold = own_latency + waits * 1000, waits > 0
    minutes = (times[-1] - times[0]) / 60
    return CacheResult(
        instances=instances,
        loaded=float(loaded.mean()),
        hit_rate=float(1 - is_cold.mean()),
        latency_ms={percent: float(np.percentile(latency, percent)) for percent in (50, 95, 99)},
        cold_latency_ms=float(np.median(latency[is_cold])) if is_cold.any() else None,
        loads_per_minute=float(is_load.sum() / minutes),
    )
