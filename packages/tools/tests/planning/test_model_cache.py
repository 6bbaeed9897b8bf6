"""The simulation of a multi-model endpoint's memory, against what is known without it."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_tools.planning.model_cache import (
    CachedModel,
    CacheResult,
    _Fleet,
    models_of_repository,
    simulate_cache,
)
from triton_model_check.memory.room import models_at_once
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

MODELS = [CachedModel(f"m{number}", 100, 2.0, latency_ms=10) for number in range(40)]


def simulate(memory_mib: float, instances: int = 1, rate: float = 1.0) -> CacheResult:
    return simulate_cache(
        MODELS, memory_mib=memory_mib, instances=instances, requests_per_second=rate
    )


def test_order_of_unloading_is_that_of_an_lru_cache() -> None:
    """On one instance, requests load a model exactly where Python's own LRU cache misses."""
    chance = random.Random(1)
    calls = [int(chance.paretovariate(0.6)) % len(MODELS) for _ in range(3000)]
    cached = lru_cache(maxsize=7)(lambda model: model)
    fleet = _Fleet(MODELS, 799.0, 1)
    for now, model in enumerate(calls):
        misses = cached.cache_info().misses
        cached(model)
        _, is_load, loaded = fleet.call(model, float(now))
        assert is_load == (cached.cache_info().misses > misses)
        assert loaded == cached.cache_info().currsize


def test_equal_models_hit_by_the_share_that_fits() -> None:
    """Of 40 equally popular models, 10 fit: a quarter of the rare requests finds its model."""
    found = simulate(1000, rate=0.001)
    assert found.loaded == 10
    assert found.hit_rate == pytest.approx(0.25, abs=0.01)
    assert found.cold_latency_ms == 2010
    assert found.latency_ms[50] == 2010


def test_instances_add_their_memory() -> None:
    """Four instances of 10 models hold all 40, and nothing is loaded after the beginning."""
    found = simulate(1000, instances=4)
    assert (found.loaded, found.hit_rate, found.loads_per_minute) == (40, 1, 0)
    assert found.latency_ms == {50: 10, 95: 10, 99: 10}
    assert found.cold_latency_ms is None


def test_request_during_a_load_waits_for_the_rest() -> None:
    """A second request one second after the first waits for the second half of the load."""
    fleet = _Fleet(MODELS, 1000, 1)
    assert [fleet.call(0, now) for now in (5.0, 6.0, 7.5)] == [
        (2, True, 1),
        (1, False, 1),
        (0, False, 1),
    ]


def test_model_larger_than_the_memory_is_an_error() -> None:
    """The error names the model, its memory and the limit."""
    with pytest.raises(
        InvalidValueError, match=r'model "m0": must fit into 99 MiB of memory, got 100 MiB'
    ):
        simulate(99)


def _write_plan(folder: Path, name: str, mib: int) -> None:
    version = folder / name / "1"
    version.mkdir(parents=True)
    with (version / "model.plan").open("wb") as file:
        file.truncate(mib * 2**20)
    (folder / name / "config.pbtxt").write_text('backend: "tensorrt"\n')


def test_folder_has_the_room_of_the_memory_command(tmp_path: Path) -> None:
    """A folder is simulated with the sizes, the server's share and the place that
    `constructs-triton memory` prints, so both keep the same number of archives loaded.
    """
    for name in ("a", "b", "c"):
        _write_plan(tmp_path, name, 8_000)
    instance_type = InstanceType.of("ml.g5.xlarge")
    target = Target.named("sagemaker-multi-model", instance_type=instance_type.name)
    (room,) = models_at_once(ModelRepository.from_directory(tmp_path).memory(target))
    found = models_of_repository(tmp_path, instance_type, 2.0)
    assert found.place == room.place == "GPU 0"
    assert found.memory_mib == pytest.approx(room.free / 2**20)
    assert [model.memory_mib for model in found.models] == [8_000] * 3
    result = simulate_cache(
        found.models, memory_mib=found.memory_mib, instances=1, requests_per_second=0.001
    )
    assert result.loaded == room.fewest == 2


def test_archive_elsewhere_stays_loaded(tmp_path: Path) -> None:
    """An archive that takes nothing of the place that fills first is simulated as always there."""
    _write_plan(tmp_path, "a", 8_000)
    _write_plan(tmp_path, "b", 8_000)
    declared = "[memory]\na = { gpu_mib = 8000, host_mib = 0 }\nb = { gpu_mib = 0, host_mib = 9 }\n"
    (tmp_path / "triton-models.toml").write_text(declared)
    found = models_of_repository(tmp_path, InstanceType.of("ml.g5.xlarge"), 2.0)
    assert [(model.name, model.memory_mib) for model in found.models] == [("a", 8_000), ("b", 0)]
