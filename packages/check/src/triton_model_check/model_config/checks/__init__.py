"""The rules, one module for each chapter of the documentation; ``RULES`` has all of them by their code."""

# ruff: noqa: F401 - a module registers its rules when it is imported

from __future__ import annotations

from triton_model_check.model_config.checks import (
    backend,
    batch_io,
    ensemble,
    ensemble_steps,
    instances,
    layout,
    model_file,
    onnx,
    other_backends,
    python_backend,
    python_environment,
    sagemaker,
    scheduler,
    state,
    target,
    tensors,
    text,
    torchscript,
    warmup,
)
from triton_model_check.model_config.checks.comments import ignore_comments
from triton_model_check.model_config.checks.environments import environment_packages, environment_use
from triton_model_check.model_config.checks.generation import gpu_memory, tensorrt_llm, vllm
from triton_model_check.model_config.checks.packing import files
from triton_model_check.model_config.checks.platforms import server
from triton_model_check.model_config.rules import RULES as RULES
