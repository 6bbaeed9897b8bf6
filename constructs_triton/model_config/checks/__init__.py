"""The rules, one module for each chapter of the documentation; importing the package registers them."""

from __future__ import annotations

from constructs_triton.model_config.checks import (
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
    python_calls,
    sagemaker,
    scheduler,
    state,
    target,
    tensors,
    text,
    torchscript,
    warmup,
)

__all__ = [
    "backend",
    "batch_io",
    "ensemble",
    "ensemble_steps",
    "instances",
    "layout",
    "model_file",
    "onnx",
    "other_backends",
    "python_backend",
    "python_calls",
    "sagemaker",
    "scheduler",
    "state",
    "target",
    "tensors",
    "text",
    "torchscript",
    "warmup",
]
