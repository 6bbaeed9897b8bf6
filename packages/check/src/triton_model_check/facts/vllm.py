"""The names of vLLM's engine arguments, and the defaults that memory depends on."""

from __future__ import annotations

from functools import cache

from triton_model_check.facts.published import load


@cache
def engine_arguments() -> frozenset[str]:
    """Return the names that at least one of the two releases in the table accepts."""
    return frozenset(load("vllm")["engine_arguments"])


def default_gpu_memory_utilization() -> float:
    """Return the fraction of a GPU's memory that vLLM uses by default: the larger one of the two releases."""
    return float(load("vllm")["gpu_memory_utilization"])
