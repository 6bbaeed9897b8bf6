"""Completes a configuration from the tensors of a model, as the ONNX Runtime backend does.

Source: onnxruntime_backend r24.10, src/onnxruntime.cc, ModelState::AutoCompleteConfig.
"""

from __future__ import annotations

from typing import Sequence

from .model_config import Config, TensorInfo

DEFAULT_MAX_BATCH_SIZE = 4
_SCHEDULERS = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")


def is_complete(config: Config) -> bool:
    """Return whether the backend leaves the configuration unchanged."""
    return bool((config["input"] or config.get("batch_input")) and config["output"])


def complete(config: Config, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
    """Set ``max_batch_size``, ``dynamic_batching``,
    and all inputs or outputs if none is written.
    """
    is_batchable = all(tensor.shape[:1] == (-1,) for tensor in (*inputs, *outputs))
    if config["max_batch_size"] and not is_batchable:
        raise ValueError(
            f"autofill failed for model '{config['name']}': model does not support batching while "
            "non-zero max_batch_size is specified"
        )

    if is_batchable:
        config["max_batch_size"] = config["max_batch_size"] or DEFAULT_MAX_BATCH_SIZE
        if config["max_batch_size"] > 1 and not any(name in config for name in _SCHEDULERS):
            config["dynamic_batching"] = {}

    config["input"] = config["input"] or [_written(tensor, is_batchable) for tensor in inputs]
    config["output"] = config["output"] or [_written(tensor, is_batchable) for tensor in outputs]


def _written(tensor: TensorInfo, is_batched: bool) -> Config:
    dims = list(tensor.shape[1:] if is_batched else tensor.shape)
    written: Config = {
        "name": tensor.name,
        "data_type": tensor.data_type or "TYPE_INVALID",
        "dims": dims or [1],
    }
    # One value for each item of a batch: the backend writes dims [1], and reshapes to none.
    if is_batched and not dims:
        written["reshape"] = {"shape": []}
    return written
