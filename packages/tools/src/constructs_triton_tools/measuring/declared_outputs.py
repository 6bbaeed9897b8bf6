"""Compares a response with the outputs that the model's configuration declares.

Triton passes on what a model in Python, and some other backends, return. So an output of another
shape reaches the caller without an error, and a step of an ensemble or a client that relies on
``dims`` fails later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.datatypes import by_data_type
from constructs_triton_core.errors import ConstructsTritonError
from triton_model_check.checks.loaded_config import complete
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_repository import ModelRepository

if TYPE_CHECKING:
    from constructs_triton_client import InferenceResult


def undeclared(repository: Path, result: InferenceResult) -> Iterator[str]:
    """Yield a sentence for each output whose shape or datatype is not that of ``config.pbtxt``.

    Nothing is compared if the repository does not contain the model that answered.
    """
    try:
        folder = ModelRepository.from_directory(repository).model(result.model_name)
        config = complete(folder).config
    except ConstructsTritonError:  # the model may be in another repository
        return

    path = folder.directory / "config.pbtxt"
    for output in config.output:
        if output.name not in result or not output.dims:
            continue
        batch = [-1] if config.max_batch_size > 0 else []
        dims, shape = [*batch, *output.dims], list(result[output.name].shape)
        if not _fits(shape, dims):
            yield (
                f"output {output.name!r} has shape {shape}, and {path} declares {dims}"
                f"{', with the batch in front' if batch else ''}. Triton does not compare them, "
                "but ensembles and clients may rely on dims; correct dims, or what the model "
                "returns"
            )
        declared = by_data_type(data_type_name(output.data_type))
        got = result.datatypes[output.name]
        if declared is not None and declared.datatype != got:
            yield (
                f"output {output.name!r} has datatype {got}, and {path} declares "
                f"{data_type_name(output.data_type)}; correct data_type, or what the model returns"
            )


def _fits(shape: Sequence[int], dims: Sequence[Any]) -> bool:
    """Whether a shape is one of those that ``dims`` allow; -1 is any size."""
    return len(shape) == len(dims) and all(
        wanted in (-1, size) for size, wanted in zip(shape, dims, strict=True)
    )
