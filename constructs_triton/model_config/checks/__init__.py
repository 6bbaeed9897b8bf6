"""The rules, a module a group; importing the package registers them all."""

from __future__ import annotations

from constructs_triton.model_config.checks import (
    backend,
    ensemble,
    ensemble_steps,
    instances,
    layout,
    python_backend,
    sagemaker,
    scheduler,
    state,
    target,
    tensors,
    text,
    warmup,
)

__all__ = [
    "backend",
    "ensemble",
    "ensemble_steps",
    "instances",
    "layout",
    "python_backend",
    "sagemaker",
    "scheduler",
    "state",
    "target",
    "tensors",
    "text",
    "warmup",
]
