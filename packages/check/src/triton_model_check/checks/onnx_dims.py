"""What is wrong with the dims of a tensor that an ONNX model has too, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from triton_model_check.model_files.model_file import ModelFile, ModelTensor


class Pair(NamedTuple):
    """A tensor of the configuration, with its place,
    and the tensor of the model with the same name.
    """

    field: str
    position: int
    tensor: Any
    found: ModelTensor

    @property
    def dims(self) -> list[int]:
        """The dims after ``reshape``, as the model gets them."""
        tensor = self.tensor
        return list(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)


def pairs(file: ModelFile, config: Any) -> Iterator[Pair]:
    """Yield each tensor of the configuration that the model has too."""
    for field, tensors in (("input", file.inputs), ("output", file.outputs)):
        found = {each.name: each for each in tensors}
        for index, tensor in enumerate(getattr(config, field)):
            if tensor.name in found:
                yield Pair(field, index, tensor, found[tensor.name])


def dims_fault(pair: Pair, is_batched: bool, is_exact: bool) -> tuple[str, str] | None:
    """Return message and hint. Without ``is_exact``, the runtime may infer a more precise shape."""
    given = pair.dims
    shape = pair.found.shape or ()
    if pair.field == "input" and pair.tensor.allow_ragged_batch:
        return None if shape == (-1,) else _ragged(pair, shape)
    if not shape:
        is_wrong = is_exact and any(size != 1 for size in given)
        return _scalar(pair, given) if is_wrong else None
    if is_batched and shape[0] != -1:
        return _not_batched(pair, shape)

    with_batch = [-1, *given] if is_batched else given
    if _fits(with_batch, shape, pair.field, is_exact):
        return None
    return different(pair, with_batch, shape, is_batched)


def _fits(given: Sequence[int], shape: Sequence[int], field: str, is_exact: bool) -> bool:
    if len(given) != len(shape):
        return False
    if field == "output" and is_exact:
        return list(given) == list(shape)
    return all(size in (-1, wanted) for wanted, size in zip(given, shape, strict=True))


def _ragged(pair: Pair, shape: Sequence[int]) -> tuple[str, str]:
    """Return message and hint for a ragged input that has another shape than [-1]."""
    message = (
        "configuration expects model provides input with shape [-1] for ragged input "
        f'"{pair.tensor.name}", model provides {list(shape)}'
    )
    return message, "remove allow_ragged_batch"


def _scalar(pair: Pair, given: Sequence[int]) -> tuple[str, str]:
    message = (
        f'scalar tensor "{pair.tensor.name}", should only provide 1 in dims, got {list(given)}'
    )
    return message, "write dims: [ 1 ]"


def _not_batched(pair: Pair, shape: Sequence[int]) -> tuple[str, str]:
    """Return message and hint for a model whose first dimension is no batch dimension."""
    message = (
        f'tensor "{pair.tensor.name}": for the model to support batching the shape should have at '
        "least 1 dimension and the first dimension must be -1; but shape expected by the model is "
        f"{list(shape)}"
    )
    hint = (
        f"set max_batch_size: 0 and write dims: {list(shape)}, "
        "or export the model with a variable first dimension"
    )
    return message, hint


def different(
    pair: Pair, given: Sequence[int], shape: Sequence[int], is_batched: bool
) -> tuple[str, str]:
    """Return message and hint for dims that do not fit a shape; both have the
    batch dimension, if any.
    """
    message = (
        f'tensor "{pair.tensor.name}": the model expects '
        f"{len(shape)} dimensions (shape {list(shape)}) "
        f"but the model configuration specifies {len(given)} dimensions (shape {list(given)})"
    )
    wanted = list(shape[1:] if is_batched else shape)
    hint = f"write dims: {wanted}" if wanted else "write dims: [ 1 ] and reshape: { shape: [ ] }"
    lacks_batch_size = not is_batched and [-1, *given] == list(shape)
    if lacks_batch_size:
        hint = f"set max_batch_size to at least 1, or {hint}"
    return message, hint
