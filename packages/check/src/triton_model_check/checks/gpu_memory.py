"""Whether a vLLM model fits into the memory of its GPUs.

Weights, an allowance for activations and CUDA graphs, and the key-value cache of one longest
request share the fraction of a GPU that vLLM may use. Source: vllm 0.33.0,
vllm/v1/core/kv_cache_utils.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from triton_model_check.checks.engine_arguments import engine_arguments_of
from triton_model_check.checks.language_models import vllm_engine
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.backend_releases import default_gpu_memory_utilization
from triton_model_check.memory.estimate import in_units
from triton_model_check.memory.vllm_engine import VllmEngine

_SOURCE = "vllm 0.33.0, vllm/v1/core/kv_cache_utils.py, _check_enough_kv_cache_memory"


class _Fit(NamedTuple):
    """One engine whose weights and GPUs are known."""

    engine: VllmEngine
    weights: int
    path: str


def _fits(model: ModelUnderCheck) -> Iterator[_Fit]:
    for arguments in engine_arguments_of(model) if model.target.gpu_memory_mib else ():
        engine = vllm_engine(arguments)
        if engine.weights is not None:
            yield _Fit(engine, engine.weights, arguments.path)


@rule("vllm-weights-memory", "vllm", needs_files=True, source=_SOURCE)
def weights_memory(model: ModelUnderCheck) -> Iterator[Problem]:
    """The weights fit into the memory of the GPUs that share them.

    Floating-point weights take the bytes of ``dtype``; ``cpu_offload_gb`` keeps some of them in
    host memory. The rule skips models that vLLM quantizes at load, and a ``load_format`` other than
    safetensors.
    """
    for engine, weights, path in _fits(model):
        if weights > engine.budget:
            message = (
                f"the weights need {in_units(weights)} on each GPU, "
                f"and vLLM may use {in_units(int(engine.budget))}"
            )
            hint = (
                f"{_larger_share(engine)}use {model.target.hardware} with more GPU memory, raise "
                "tensor_parallel_size on one with more GPUs, or quantize the model"
            )
            yield Problem(message, hint=hint, path=path)


@warning("vllm-cache-memory", "vllm", needs_files=True, source=_SOURCE)
def cache_memory(model: ModelUnderCheck) -> Iterator[Problem]:
    """The key-value cache of one request of ``max_model_len`` tokens fits beside the weights.

    Otherwise vLLM does not start. 1 GiB is assumed for activations and CUDA graphs. The rule skips
    models with a sliding window, latent attention or another cache, whose size it cannot compute.
    """
    for engine, weights, path in _fits(model):
        if weights > engine.budget or not (engine.longest and engine.bytes_per_token):
            continue
        needed = engine.bytes_per_token * engine.longest
        if needed > engine.free:
            message = (
                f"a request of {engine.longest} tokens needs {in_units(int(needed))} of key-value "
                f"cache on each GPU; beside weights of {in_units(weights)} about "
                f"{in_units(max(0, int(engine.free)))} are free"
            )
            yield Problem(message, hint=_shorter(engine, model.target.hardware), path=path)


def _shorter(engine: VllmEngine, hardware: str) -> str:
    fitting = int(engine.free / engine.bytes_per_token) // 256 * 256 if engine.free > 0 else 0
    shorter = f'add "max_model_len": {fitting}, ' if fitting else ""
    larger = f"use {hardware} with more GPU memory"
    others = shorter + _larger_share(engine)
    return f"{others}or {larger}" if others else larger


def _larger_share(engine: VllmEngine) -> str:
    """Return the beginning of a hint if ``model.json`` demands less than vLLM's default."""
    if engine.share is None or engine.share >= default_gpu_memory_utilization():
        return ""
    return f"raise gpu_memory_utilization, which is {engine.share:.3g}, "
