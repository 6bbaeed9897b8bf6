"""Describes a model file: chooses the reader by the format that the file's place says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from constructs_triton.model_files.model_file import FileFault, ModelFile
from constructs_triton.model_files.onnx_file import describe_onnx

__all__ = ["describe"]


def describe(
    folder: Path, place: str, image_version: str | None = None, *, has_op_library: bool = False
) -> ModelFile:
    """Describe the ONNX model at ``place`` below ``folder``; the result names ``place``.

    A directory in place of the file holds ``model.onnx`` (rule F2 of the backend).
    """
    path = folder / place
    if path.is_dir():
        path, place = path / "model.onnx", f"{place}/model.onnx"
    try:
        # O_NONBLOCK: opening a pipe must not wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return ModelFile(Path(place), "onnx", faults=(_missing(path, place),))
    with os.fdopen(descriptor, "rb") as file:
        if not path.is_file():
            return ModelFile(Path(place), "onnx", faults=(_missing(path, place),))
        if path.suffix == ".ort":
            return _describe_ort(place, file)
        found = describe_onnx(path, file, image_version, has_op_library=has_op_library)
    return replace(found, path=Path(place))


def _describe_ort(place: str, file: BinaryIO) -> ModelFile:
    """Rule F3: the runtime reads a file with this suffix as its own flatbuffer format."""
    if file.read(8)[4:] == b"ORTM":
        return ModelFile(Path(place), "ort", not_checked=("content of an ORT format model not checked",))
    message = "ORT model verification failed: a file with the suffix .ort must be in the ORT format"
    fault = FileFault(
        "onnx-not-a-model", message, "name an ONNX model model.onnx, or convert it to the ORT format"
    )
    return ModelFile(Path(place), "ort", faults=(fault,))


def _missing(path: Path, place: str) -> FileFault:
    reason = "is a link to a file that does not exist" if path.is_symlink() else "does not exist"
    return FileFault(
        "model-file-missing", f"failed to stat file {place}: it {reason}", f"put the model there, as {place}"
    )
