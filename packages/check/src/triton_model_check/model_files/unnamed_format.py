"""Recognizes the format of a model whose name does not say it, by its content."""

from __future__ import annotations

from pathlib import Path

from triton_model_check.model_files.description import describe, format_of
from triton_model_check.model_files.model_file import ModelFormat
from triton_model_check.model_files.other_formats import SAVED_MODELS
from triton_model_check.model_files.trees import proven_model_type
from triton_model_check.model_files.wrong_content import PLAN_BEGINNING

__all__ = ["format_by_content", "models_in"]

_HEAD_BYTES = 4096
_ZIP_BEGINNING = b"PK\x03\x04"


def format_by_content(path: Path) -> ModelFormat:
    """Return the format of a file or folder, or ``"unknown"`` if the content proves none.

    Files of TorchScript have many endings, such as ``.jit`` and ``.ts``, and TensorFlow writes a
    folder of any name.
    """
    if path.is_dir():
        has_graph = any((path / name).is_file() for name in SAVED_MODELS)
        return "savedmodel" if has_graph else "unknown"
    head = _head(path)
    if head.startswith(PLAN_BEGINNING):
        return "tensorrt_plan"
    if head.startswith(_ZIP_BEGINNING):
        described = describe(path, model_format="torchscript")
        is_other = any(fault.code == "torchscript-not-a-model" for fault in described.faults)
        return "unknown" if is_other else "torchscript"
    return "tree" if proven_model_type(head) else "unknown"


def models_in(folder: Path) -> list[str]:
    """Return the names of the models in a folder, by their endings and their content."""
    return [
        path.name
        for path in sorted(folder.iterdir())
        if format_of(path) != "unknown" or (path.is_dir() and format_by_content(path) != "unknown")
    ]


def _head(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)
