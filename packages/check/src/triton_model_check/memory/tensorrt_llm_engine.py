"""What an engine of TensorRT-LLM takes of each of its GPUs.

``trtllm-build`` writes one file for each process, which has the weights of that process. Each
process uses one GPU. After it has loaded its engine, it takes a fraction of the memory that is
then free for its key-value cache. Source: triton tensorrtllm_backend docs/model_config.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from triton_model_check.facts.published import load
from triton_model_check.memory.engine import EngineMemory, GpuUse

_RANK = re.compile(r"rank(\d{1,4})\.engine")
_DEFAULT_FRACTION = 0.9
_MOST_DIGITS = 12


@dataclass(frozen=True)
class TensorRtLlmEngine:
    """One engine folder: the bytes of the file of each process, in order."""

    ranks: tuple[int, ...]

    @classmethod
    def read(cls, folder: Path) -> TensorRtLlmEngine | None:
        """Read the sizes of the files of the processes; ``None`` if one is absent."""
        sizes: dict[int, int] = {}
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    named = _RANK.fullmatch(entry.name)
                    if named and entry.is_file():
                        sizes[int(named[1])] = entry.stat().st_size
        except (OSError, ValueError):
            return None
        if not sizes or sorted(sizes) != list(range(len(sizes))):
            return None
        return cls(tuple(sizes[rank] for rank in sorted(sizes)))


def engine_memory(
    engines: Sequence[TensorRtLlmEngine],
    parameters: Mapping[str, str],
    instances: int,
    gpu_count: int,
) -> EngineMemory:
    """Return what the engines of a model take: the decoder's, and that of an encoder.

    ``parameters`` are those of ``config.pbtxt``. A file for a GPU that does not exist counts
    nothing, since another check reports it.
    """
    kept = _fraction(parameters.get("gpu_weights_percent", ""), 1.0)
    beside = int(load("memory")["gpu"]["plan_beside_weights_bytes"])
    groups = _gpu_groups(parameters.get("gpu_device_ids", "")) or [range(gpu_count)]
    uses = []
    for index, gpus in enumerate(groups[:instances]):
        # The instances use the groups in turn.
        count = -(-(instances - index) // len(groups))
        for engine in engines:
            for gpu, size in zip(gpus, engine.ranks, strict=False):
                if gpu in range(gpu_count):
                    # On which of several GPUs further instances are depends on the release.
                    certain = (count if gpu_count == 1 else 1) * max(0, size - beside)
                    on_gpu = count * int(size * kept)
                    uses.append(GpuUse(gpu, "engine", on_gpu, count, certain if kept == 1 else 0))
    return EngineMemory.joined([EngineMemory(tuple(uses), (_cache(parameters),))])


def _cache(parameters: Mapping[str, str]) -> str:
    """Return what the key-value cache takes, in words: its size depends on what is loaded."""
    fraction = _fraction(parameters.get("kv_cache_free_gpu_mem_fraction", ""), _DEFAULT_FRACTION)
    cache = (
        f"its key-value cache takes up to {fraction * 100:.3g} percent of the memory that is free "
        "when its engine is loaded (kv_cache_free_gpu_mem_fraction)"
    )
    tokens = parameters.get("max_tokens_in_paged_kv_cache", "")
    is_number = tokens.isdecimal() and len(tokens) < _MOST_DIGITS
    return f"{cache}, or {tokens} tokens" if is_number else cache


def _fraction(text: str, default: float) -> float:
    """Return a parameter that is a fraction; its default if it is empty or a placeholder."""
    try:
        value = float(text)
    except ValueError:
        return default
    return value if 0 < value <= 1 else default


def _gpu_groups(text: str) -> list[Sequence[int]]:
    """Return the GPUs of each instance: ``0,1;2,3`` are two instances with two GPUs each."""
    groups: list[Sequence[int]] = []
    for group in text.split(";"):
        numbers = [number.strip() for number in group.split(",")]
        if not all(number.isdecimal() and len(number) < _MOST_DIGITS for number in numbers):
            return []
        groups.append([int(number) for number in numbers])
    return groups
