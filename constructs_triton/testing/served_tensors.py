"""Reads the inputs and outputs of a model from the files that an update deploys."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from constructs_triton_core.datatypes import by_data_type
from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.model_tensors import ModelTensor

if TYPE_CHECKING:
    from triton_model_check.model_repository.repository import ModelRepository

_ARCHIVE = "model.tar.gz"


def tensors_of(files: Mapping[str, bytes], model: str) -> tuple[ModelTensor, ...] | None:
    """Return the inputs and outputs that callers of a model send and receive.

    Args:
        files: The files of a model repository by path, or ``model.tar.gz`` alone.
        model: Name of the model that is called. Empty, or of none: the only one that no other
            model of the repository needs.

    Returns:
        The tensors, or ``None`` if neither the configuration nor the model file states them.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            repository = _repository(files, Path(folder))
            return _tensors(repository, model)
        except ConstructsTritonError:  # a damaged archive; the check says it
            return None


def _repository(files: Mapping[str, bytes], folder: Path) -> ModelRepository:
    """Write the files to a folder, an archive only in its outline, and open it."""
    from triton_model_check.model_repository.archive_outline import (
        outline_archive,
    )
    from triton_model_check.model_repository.repository import (
        ModelRepository,
    )

    for name, content in files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or name.endswith("/"):
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    if list(files) == [_ARCHIVE]:
        return outline_archive(folder / _ARCHIVE).repository
    return ModelRepository.from_directory(folder)


def _tensors(repository: ModelRepository, model: str) -> tuple[ModelTensor, ...] | None:
    from triton_model_check.checks.loaded_config import complete

    name = model
    if name not in repository.models:
        top = repository.top_level_models()
        if len(top) != 1:
            return None
        (name,) = top
    loaded = complete(repository.models[name])
    config, written = loaded.config, loaded.written
    # Code may add tensors to those that are written; a backend only adds what is missing.
    is_certain = not loaded.notes
    if written.input and written.output and config.backend != "python":
        is_certain = True
    if not is_certain or not (config.input and config.output):
        return None
    return (
        *_rows("input", config.input, config.max_batch_size),
        *_rows("output", config.output, config.max_batch_size),
    )


def _rows(
    kind: Literal["input", "output"], tensors: Any, max_batch_size: int
) -> Iterator[ModelTensor]:
    batch = (-1,) if max_batch_size > 0 else ()
    for tensor in tensors:
        name = type(tensor).DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number
        row = by_data_type(name[tensor.data_type].name)
        datatype = row.datatype if row is not None else name[tensor.data_type].name
        is_optional = kind == "input" and tensor.optional
        yield ModelTensor(kind, tensor.name, datatype, (*batch, *tensor.dims), is_optional)
