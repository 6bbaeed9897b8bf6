"""What one engine of vLLM takes of each of its GPUs.

At its start, vLLM demands that ``gpu_memory_utilization`` of the whole GPU is free. It then fills
this share with the weights, with an allowance for activations and CUDA graphs, and with the
key-value cache. Source: vllm at commit 0027b027, vllm/v1/worker/utils.py, request_memory, and vllm
0.33.0, vllm/v1/core/kv_cache_utils.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_model_check.facts.backend_releases import default_gpu_memory_utilization
from triton_model_check.facts.published import load
from triton_model_check.memory.engine import RESERVES
from triton_model_check.model_files.transformer import Transformer

_GIB = 2**30
_MOST_GIB = 2**20
_LARGEST = 2**53
_OVERHEAD = _GIB  # measured between 1 and 2 GiB; the smaller one warns less
_WIDE_TYPES = frozenset({"float", "float32"})
_READ_FORMATS = frozenset({"auto", "dummy", "safetensors"})
"""The values of ``load_format`` with which the weights are those of the safetensors files."""
_POOLING_TASKS = frozenset({"embed", "embedding", "classify", "score", "reward", "encode"})
_BLOCK_TOKENS = 16
_ARGUMENTS_OF_POOLING = ("task", "convert")


@dataclass(frozen=True)
class VllmEngine:
    """One engine: its arguments, its weights if they are known, and the memory of each GPU.

    Args:
        values: The content of ``model.json``.
        transformer: What the folder of the weights says; ``None`` if it is elsewhere.
        gpu_bytes: Memory of each GPU; ``None`` if unknown.
        tensor_parallel: Number of GPUs that share each layer.
        pipeline_parallel: Number of GPUs that share the layers.
    """

    values: Mapping[str, Any]
    transformer: Transformer | None
    gpu_bytes: int | None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1

    @property
    def gpus(self) -> int:
        """How many GPUs the engine and its replicas use."""
        replicas = _whole(self.values.get("data_parallel_size")) or 1
        return self.tensor_parallel * self.pipeline_parallel * replicas

    @property
    def weights(self) -> int | None:
        """Bytes of the weights on each GPU; ``None`` if they are not known.

        They are not known if vLLM quantizes them at load, or reads another format.
        """
        if self.transformer is None or self._changes_weights:
            return None
        value_bytes = 4 if str(self.values.get("dtype")) in _WIDE_TYPES else 2
        size = self.transformer.bytes_with(value_bytes)
        on_each = size // (self.tensor_parallel * self.pipeline_parallel)
        return max(0, on_each - self._offloaded)

    @property
    def share(self) -> float | None:
        """The fraction that ``model.json`` demands; ``None`` is the default of the release."""
        return _number(self.values.get("gpu_memory_utilization"), most=1)

    @property
    def budget(self) -> float:
        """Bytes that vLLM may use of each GPU, with the larger default of two releases."""
        share = default_gpu_memory_utilization() if self.share is None else self.share
        return (self.gpu_bytes or 0) * share

    @property
    def free(self) -> float:
        """Bytes of the budget that are left for the key-value cache."""
        return self.budget - (self.weights or 0) - _OVERHEAD

    @property
    def bytes_per_token(self) -> float:
        """Bytes of the key-value cache of one token on each GPU; 0 if unknown."""
        if self.transformer is None:
            return 0
        kind = str(self.values.get("kv_cache_dtype", "auto"))
        value_bytes = 1 if kind.startswith("fp8") else 2
        return self.transformer.cache_bytes_per_token(
            self.tensor_parallel, self.pipeline_parallel, value_bytes
        )

    @property
    def longest(self) -> int:
        """The longest request, in tokens; 0 if unknown."""
        given = _whole(self.values.get("max_model_len"))
        if given is not None:
            return given
        return 0 if self.transformer is None else self.transformer.max_position

    def use(self) -> tuple[str, int] | None:
        """Return what the engine takes of each of its GPUs, at least; ``None`` if unknown."""
        cache = self._given_cache
        if cache is not None:
            size = (self.weights or 0) + cache
            return ("weights and key-value cache", size) if size else None
        if self.gpu_bytes is None or self._is_pooling:
            return None if self.weights is None else ("weights", self.weights)

        smallest = float(load("memory")["vllm"]["smallest_default_share"])
        share = smallest if self.share is None else self.share
        size = int(self.gpu_bytes * share)
        if self.weights is not None and self.weights > size:
            return "weights", self.weights
        return f"{RESERVES} {share * 100:.3g} percent of the GPU", size

    @property
    def _changes_weights(self) -> bool:
        """Whether the weights on the GPU are others than those of the files.

        A model that is quantized in its files keeps its size. Otherwise ``quantization`` makes
        vLLM quantize the weights while it loads them.
        """
        at_load = bool(self.values.get("quantization")) and not (
            self.transformer is not None and self.transformer.is_quantized
        )
        return at_load or str(self.values.get("load_format", "auto")) not in _READ_FORMATS

    @property
    def _offloaded(self) -> int:
        """Bytes of weights that stay in host memory, for each GPU."""
        given = _number(self.values.get("cpu_offload_gb"), most=_MOST_GIB)
        return 0 if given is None else int(given * _GIB)

    @property
    def _given_cache(self) -> int | None:
        """Bytes of the key-value cache if ``model.json`` sets its size.

        The share is then not filled. A number of blocks of unknown size counts nothing.
        """
        given = _whole(self.values.get("kv_cache_memory_bytes"))
        if given is not None:
            return given
        blocks = _whole(self.values.get("num_gpu_blocks_override"))
        if blocks is None:
            return None
        tokens = _whole(self.values.get("block_size")) or _BLOCK_TOKENS
        return int(blocks * tokens * self.bytes_per_token)

    @property
    def _is_pooling(self) -> bool:
        """Whether the model computes embeddings or scores, and may need no key-value cache."""
        if self.values.get("runner") in ("pooling", "generate"):
            return bool(self.values["runner"] == "pooling")
        given = [self.values.get(name) for name in _ARGUMENTS_OF_POOLING]
        if any(isinstance(value, str) and value in _POOLING_TASKS for value in given):
            return True
        return self.transformer is not None and not self.transformer.generates


def _whole(value: Any) -> int | None:
    """Return a value that is a whole number above 0; ``None`` for others, and for absurd ones."""
    return value if type(value) is int and 0 < value <= _LARGEST else None


def _number(value: Any, most: float) -> float | None:
    """Return a value that is a number above 0 and at most ``most``; ``None`` for others."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value <= most else None
