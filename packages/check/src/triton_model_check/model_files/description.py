"""Describes a model file: chooses the reader by the format."""

# os.path says False of a name that no file can have; pathlib raises an error for a long one.
# ruff: noqa: PTH110, PTH112, PTH113, PTH114

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from constructs_triton_core.spelling import quoted
from triton_model_check.facts.published import load
from triton_model_check.model_files.model_file import FaultCode, FileFault, ModelFile, ModelFormat
from triton_model_check.model_files.wrong_content import pointer_fault
from triton_model_check.onnx_runtimes.asking import Asking

_ONNX_FILE = "model.onnx"
_NOT_THE_FORMAT: dict[ModelFormat, FaultCode] = {
    "onnx": "onnx-not-a-model",
    "ort": "onnx-not-a-model",
    "tensorrt_plan": "plan-not-a-plan",
    "torchscript": "torchscript-not-a-model",
}
_SUFFIXES: dict[str, ModelFormat] = load("names")["formats"]


def format_of(path: Path) -> ModelFormat:
    """Return the format that the name of a file says, or ``"unknown"``."""
    return _SUFFIXES.get(path.suffix, "unknown")


def describe(
    path: Path,
    image_version: str | None = None,
    *,
    model_format: ModelFormat | None = None,
    has_op_library: bool = False,
    on_cpu: bool = False,
    graph_level: int = 0,
    onnx_runtime: Asking = "never",
) -> ModelFile:
    """Describe a model file, as an image loads it.

    A file that cannot be opened is a fault of the result, not an exception.

    Args:
        path: Path of the file, or of the folder of a SavedModel.
        image_version: Version of the Triton image, such as ``"26.05"``. Default: the newest.
        model_format: Format of the file. Default: what its name says.
        has_op_library: Whether the configuration of an ONNX model names a library of custom
            operators.
        on_cpu: Whether an ONNX model runs on the CPU only, which implements fewer operators than a
            GPU.
        graph_level: ``optimization.graph.level`` of the configuration.
        onnx_runtime: Whether the ONNX Runtime of the image's release is asked about an ONNX model:
            ``"auto"`` asks it if it is installed or was fetched before, ``"fetch"`` fetches it.
    """
    used_format = model_format or format_of(path)
    if used_format == "savedmodel" and os.path.exists(path):
        from triton_model_check.model_files.other_formats import describe_saved_model

        return describe_saved_model(path)
    file_path = path / _ONNX_FILE if used_format == "onnx" and os.path.isdir(path) else path
    with _opened(file_path) as file:
        if file is None:
            return ModelFile(file_path, used_format, faults=(_missing(file_path, used_format),))
        pointer = pointer_fault(file, _NOT_THE_FORMAT.get(used_format, "model-file-format"))
        if pointer is not None:
            return ModelFile(file_path, used_format, faults=(pointer,))
        if used_format in ("onnx", "ort"):
            return _describe_onnx(
                file_path,
                file,
                image_version,
                has_op_library=has_op_library,
                on_cpu=on_cpu,
                graph_level=graph_level,
                asking=onnx_runtime,
            )
        return _describe(file_path, file, used_format, image_version)


def _describe(
    path: Path, file: BinaryIO, used_format: ModelFormat, image_version: str | None
) -> ModelFile:
    """Describe a file of another format than ONNX.

    Each reader is imported when its format is read.
    """
    if used_format == "tensorrt_plan":
        from triton_model_check.model_files.tensorrt_plan import describe_plan

        return describe_plan(path, file, image_version)
    if used_format == "torchscript":
        from triton_model_check.model_files.torchscript import describe_torchscript

        return describe_torchscript(path, file)
    if used_format == "tree":
        from triton_model_check.model_files.trees import describe_tree

        return describe_tree(path, file)
    from triton_model_check.model_files.other_formats import describe_by_content, describe_openvino

    if used_format == "openvino":
        return describe_openvino(path, file)
    return describe_by_content(path, file, used_format)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | None]:
    descriptor = _descriptor(path)
    if descriptor is None:
        yield None
        return
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _descriptor(path: Path) -> int | None:
    """Open a regular file; return ``None`` if it is none or cannot be opened."""
    try:
        # O_NONBLOCK: opening a named pipe must not wait for its writer.
        return (
            os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            if os.path.isfile(path)
            else None
        )
    except (OSError, ValueError):
        return None


def _describe_onnx(
    path: Path, file: BinaryIO, image_version: str | None, **options: Any
) -> ModelFile:
    """F3: the runtime reads a file with the suffix .ort in its own format, a flatbuffer."""
    if path.suffix != ".ort":
        from triton_model_check.model_files.onnx_file import describe_onnx

        return describe_onnx(path, file, image_version, **options)
    if file.read(8)[4:] == b"ORTM":
        from triton_model_check.model_files.onnx_file import describe_ort

        return describe_ort(path, image_version, **options)
    from triton_model_check.model_files.onnx_faults import not_a_model

    return ModelFile(path, "ort", faults=(not_a_model("ORT model verification failed"),))


def _missing(path: Path, used_format: ModelFormat) -> FileFault:
    message = f'failed to stat file "{path.name}": it {_why_missing(path)}'
    return FileFault("model-file-missing", message, _hint(path, used_format))


def _why_missing(path: Path) -> str:
    if os.path.exists(path):
        return "is a folder" if os.path.isdir(path) else "is not a regular file that can be read"
    return "is a link to a file that does not exist" if os.path.islink(path) else "does not exist"


def _hint(path: Path, used_format: ModelFormat) -> str:
    """Return how to let the server find a model file that is not at ``path``."""
    from triton_model_check.model_files.model_file import TREE_MODEL_FILES

    others = []
    for name in _names(path.parent):
        if name != path.name and format_of(Path(name)) == used_format:
            others.append(name)
    if not others:
        return f'copy the model to "{path.parent.name}/{path.name}"'

    in_other_case = [name for name in others if name.lower() == path.name.lower()]
    if len(others) > 1 and not in_other_case and used_format != "tree":
        return (
            f"set default_model_filename to the name of the model, one of {quoted(others)}, "
            f'or rename that one to "{path.name}"'
        )
    shown = (in_other_case or others)[0]
    if used_format == "tree":
        for model_type, name in TREE_MODEL_FILES.items():
            if name == shown:
                return (
                    'write parameters { key: "model_type" '
                    f'value {{ string_value: "{model_type}" }} }}'
                )
    return f'rename "{shown}" to "{path.name}", or set default_model_filename: "{shown}"'


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []
