"""Whether a vLLM model fits into the memory of its GPUs.

Weights, an allowance for activations and CUDA graphs, and the key-value cache of one longest
request share the fraction of a GPU that vLLM may use. Source: vllm 0.33.0,
vllm/v1/core/kv_cache_utils.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from triton_model_check.checks.engine_arguments import (
    EngineArguments,
    engine_arguments_of,
)
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.backend_releases import default_gpu_memory_utilization
from triton_model_check.model_files.transformer import Transformer, read_transformer

_MIB, _GIB = 2**20, 2**30
_OVERHEAD = _GIB  # measured between 1 and 2 GiB; the smaller one warns less
_SOURCE = "vllm 0.33.0, vllm/v1/core/kv_cache_utils.py, _check_enough_kv_cache_memory"
_SHRINKING = ("cpu_offload_gb", "quantization", "load_format")
"""Arguments with which the weights on the GPU are smaller than their files, or are elsewhere."""


@dataclass(frozen=True)
class _Fit:
    """One engine on the GPUs of the endpoint; memory in bytes for each GPU."""

    arguments: EngineArguments
    transformer: Transformer
    memory: int

    @property
    def weights(self) -> float:
        return self.transformer.weight_bytes / self.arguments.gpus

    @property
    def budget(self) -> float:
        given = self.arguments.values.get("gpu_memory_utilization")
        if isinstance(given, (int, float)) and 0 < given <= 1:
            return self.memory * given
        return self.memory * default_gpu_memory_utilization()

    @property
    def free(self) -> float:
        return self.budget - self.weights - _OVERHEAD

    @property
    def bytes_per_token(self) -> float:
        kind = str(self.arguments.values.get("kv_cache_dtype", "auto"))
        value_bytes = 1 if kind.startswith("fp8") else 2
        parallel = (self.arguments.tensor_parallel, self.arguments.pipeline_parallel)
        return self.transformer.cache_bytes_per_token(*parallel, value_bytes)

    @property
    def longest(self) -> int:
        given = self.arguments.values.get("max_model_len")
        return given if type(given) is int and given > 0 else self.transformer.max_position

    @property
    def is_smaller_on_gpu(self) -> bool:
        return any(self.arguments.values.get(name) for name in _SHRINKING)


def _fits(model: ModelUnderCheck) -> Iterator[_Fit]:
    memory = model.target.gpu_memory_mib
    for arguments in engine_arguments_of(model) if memory else ():
        folder = arguments.local_folder
        transformer = None if folder is None else read_transformer(folder)
        if transformer is not None and memory is not None:
            yield _Fit(arguments, transformer, memory * _MIB)


@rule("vllm-weights-memory", "vllm", needs_files=True, source=_SOURCE)
def weights_memory(model: ModelUnderCheck) -> Iterator[Problem]:
    """The weights fit into the memory of the GPUs that share them.

    The rule skips models with ``cpu_offload_gb``, ``quantization`` or ``load_format``, which change
    how much of the files is on a GPU.
    """
    for fit in _fits(model):
        if fit.weights > fit.budget and not fit.is_smaller_on_gpu:
            message = (
                f"the weights need {_gib(fit.weights)} on each GPU, "
                f"and vLLM may use {_gib(fit.budget)}"
            )
            hint = (
                f"use {model.target.hardware} with more GPU memory, raise tensor_parallel_size on "
                "one with more GPUs, or quantize the model"
            )
            yield Problem(message, hint=hint, path=fit.arguments.path)


@warning("vllm-cache-memory", "vllm", needs_files=True, source=_SOURCE)
def cache_memory(model: ModelUnderCheck) -> Iterator[Problem]:
    """The key-value cache of one request of ``max_model_len`` tokens fits beside the weights.

    Otherwise vLLM does not start. 1 GiB is assumed for activations and CUDA graphs. The rule skips
    models with a sliding window, latent attention or another cache, whose size it cannot compute.
    """
    for fit in _fits(model):
        if (
            fit.is_smaller_on_gpu
            or fit.weights > fit.budget
            or not (fit.longest and fit.bytes_per_token)
        ):
            continue
        needed = fit.bytes_per_token * fit.longest
        if needed > fit.free:
            message = (
                f"a request of {fit.longest} tokens needs {_gib(needed)} "
                "of key-value cache on each "
            )
            message += (
                f"GPU; beside weights of {_gib(fit.weights)} "
                f"about {_gib(max(0, fit.free))} are free"
            )
            yield Problem(
                message, hint=_shorter(fit, model.target.hardware), path=fit.arguments.path
            )


def _shorter(fit: _Fit, hardware: str) -> str:
    fitting = int(fit.free / fit.bytes_per_token) // 256 * 256 if fit.free > 0 else 0
    larger = f"use {hardware} with more GPU memory"
    return f'add "max_model_len": {fitting}, or {larger}' if fitting else larger


def _gib(size: float) -> str:
    return f"{size / _GIB:.1f} GiB"
