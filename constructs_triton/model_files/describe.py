"""Describes a model file: chooses the reader by the name of the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from constructs_triton.model_files.model_file import FileFault, ModelFile
from constructs_triton.model_files.onnx_faults import not_a_model
from constructs_triton.model_files.onnx_file import describe_onnx

__all__ = ["describe_onnx_model"]

_ONNX_FILE = "model.onnx"


def describe_onnx_model(
    path: Path, image_version: str | None = None, *, has_op_library: bool = False
) -> ModelFile:
    """Describe the ONNX model at ``path``, as the image ``image_version`` loads it (default: the newest).

    A directory is a model whose file is ``model.onnx`` in it (F2). A file that cannot be opened is a fault
    of the result, not an exception. ``has_op_library`` is whether the configuration names a library of
    custom operators.
    """
    file_path = path / _ONNX_FILE if path.is_dir() else path
    with _opened(file_path) as file:
        if file is None:
            return ModelFile(file_path, "onnx", faults=(_missing(file_path, ".onnx"),))
        if file_path.suffix == ".ort":
            return _describe_ort(file_path, file)
        return describe_onnx(file_path, file, image_version, has_op_library=has_op_library)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | None]:
    try:
        # O_NONBLOCK: opening a named pipe must not wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        yield None
        return
    with os.fdopen(descriptor, "rb") as file:
        yield file if path.is_file() else None


def _describe_ort(path: Path, file: BinaryIO) -> ModelFile:
    """F3: the runtime reads a file with this suffix in its own format, a flatbuffer."""
    if file.read(8)[4:] == b"ORTM":
        return ModelFile(path, "ort", not_checked=("content not checked",))
    return ModelFile(path, "ort", faults=(not_a_model("ORT model verification failed"),))


def _missing(path: Path, suffix: str) -> FileFault:
    reason = "is a link to a file that does not exist" if path.is_symlink() else "does not exist"
    return FileFault(
        "model-file-missing", f'failed to stat file "{path.name}": it {reason}', _hint(path, suffix)
    )


def _hint(path: Path, suffix: str) -> str:
    others = [name for name in _names(path.parent) if name.endswith(suffix) and name != path.name]
    if not others:
        return f'copy the model to "{path.parent.name}/{path.name}"'
    shown = others[0]
    return f'rename "{shown}" to "{path.name}", or set default_model_filename: "{shown}"'


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
