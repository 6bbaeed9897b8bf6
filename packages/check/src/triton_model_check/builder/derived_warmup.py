"""Warmup requests of zeros for every input of a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.model_config.schema import message_class

__all__ = ["concrete_dims"]

TENSOR_EXAMPLE = {"input": "INPUT__0", "output": "OUTPUT__0", "dims": "3,224,224"}
"""The names and dims in hints about missing tensors."""


def warmup_requests(
    config: Any, path: Path, syntax: Mapping[str, str], dims: Mapping[str, Sequence[int]]
) -> Iterator[Any]:
    """Yield a request of batch size 1 and, with batching, one of the largest batch.

    Raises:
        InvalidValueError: the configuration has no inputs, or ``dims`` do not fit an input.
    """
    if not config.input:
        raise InvalidValueError(
            f"{path}: {syntax['with_warmup']} needs the inputs, which the file does not say; set "
            f"{syntax['input'].format(**TENSOR_EXAMPLE)}"
        )
    shapes = concrete_dims(config, dims)
    for batch_size in dict.fromkeys((1, max(1, config.max_batch_size))):
        request = message_class("ModelWarmup")(
            name=f"zeros_batch_{batch_size}", batch_size=batch_size
        )
        for tensor in config.input:
            if not tensor.optional:
                value = request.inputs[tensor.name]
                value.data_type = tensor.data_type
                value.dims.extend(shapes[tensor.name])
                value.zero_data = True
        yield request


def concrete_dims(config: Any, dims: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Return dims without -1 for each input: those of ``dims``, else 1 for each variable size.

    Raises:
        InvalidValueError: ``dims`` have an unknown input, or do not fit its dims.
    """
    declared = {tensor.name: tuple(tensor.dims) for tensor in config.input}
    for name, given in dims.items():
        if name not in declared:
            hint = did_you_mean(name, declared, f"its inputs are {quoted(declared)}")
            raise InvalidValueError(
                f'shape of "{name}": the model has no input of that name; {hint}'
            )
        if not _fits(given, declared[name]):
            raise InvalidValueError(
                f'shape of "{name}": must fit the dims {list(declared[name])}, got {list(given)}; '
                "write a size for each of them, without the batch dimension"
            )
    defaults = {
        name: tuple(1 if size < 0 else size for size in each) for name, each in declared.items()
    }
    return {**defaults, **{name: tuple(given) for name, given in dims.items()}}


def _fits(given: Sequence[int], declared: Sequence[int]) -> bool:
    return len(given) == len(declared) and all(
        size >= 0 and wanted in (-1, size) for size, wanted in zip(given, declared, strict=True)
    )
