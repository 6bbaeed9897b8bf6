"""Which file of a version each backend loads, and what the file says."""

# os.path says False of a name that no file can have; pathlib raises an error for a long one.
# ruff: noqa: PTH110, PTH112, PTH113

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from triton_model_check import model_files
from triton_model_check.model.backends import Backend
from triton_model_check.model_files.model_file import TREE_MODEL_FILES, ModelFile, ModelFormat
from triton_model_check.onnx_runtimes.asking import Asking
from triton_model_check.untrusted.budget import count_elements
from triton_model_check.untrusted.elsewhere import note_path

__all__ = ["describe_file", "file_to_load"]

_FORMATS: dict[str, tuple[ModelFormat, str]] = {
    "onnxruntime": ("onnx", "model.onnx"),
    "tensorrt": ("tensorrt_plan", "model.plan"),
    "pytorch": ("torchscript", "model.pt"),
    "openvino": ("openvino", "model.xml"),
    "dali": ("dali", "model.dali"),
}
_TENSORFLOW: dict[str, tuple[ModelFormat, str]] = {
    "tensorflow_savedmodel": ("savedmodel", "model.savedmodel"),
    "tensorflow_graphdef": ("unknown", "model.graphdef"),
}
_LIBTORCH = ("", "pytorch_libtorch", "libtorch")


class FileToLoad(NamedTuple):
    """The format of a model file, and its path in the folder of a version."""

    format: ModelFormat
    place: str


def file_to_load(backend: Backend, config: Any | None) -> FileToLoad | None:
    """Return the file that the backend loads, or ``None`` if this depends on more than the
    configuration.

    Another ``runtime`` than the backend's own library may load any file, and ``cc_model_filenames``
    chooses the file by the GPU.
    """
    if config is not None and config.cc_model_filenames:
        return None
    return _default_file(backend, config)


def files_to_load(
    backend: Backend,
    config: Any | None,
    compute_capability: str | None,
    gpu_count: int | None = None,
) -> tuple[FileToLoad, ...]:
    """Return the files that the backend may load.

    ``cc_model_filenames`` has one for each compute capability; the backend loads the default file
    on a GPU that it does not contain, and without a GPU. If the GPU is not known, every file of the
    field has to be right.
    """
    default = _default_file(backend, config)
    if default is None:
        return ()
    by_capability = dict(config.cc_model_filenames) if config is not None else {}
    if not by_capability or gpu_count == 0:
        return (default,)
    if compute_capability is not None:
        chosen = by_capability.get(compute_capability)
        return (default._replace(place=chosen.lstrip("/")) if chosen else default,)
    return tuple(
        default._replace(place=each.lstrip("/")) for each in sorted(set(by_capability.values()))
    )


def _default_file(backend: Backend, config: Any | None) -> FileToLoad | None:
    """Return the file of a version that the backend loads; ``None`` if it is not known."""
    format_and_name = _format_and_name(backend, config)
    is_own_runtime = config is not None and config.runtime not in (
        "",
        f"libtriton_{backend.backend}.so",
    )
    if format_and_name is None or is_own_runtime:
        return None
    model_format, name = format_and_name
    # Triton appends an absolute path to that of the version too (JoinPath).
    given = config.default_model_filename if config is not None else ""
    place = given.lstrip("/") if given else name
    if _is_read_otherwise(model_format, place, backend.platform):
        return None
    return FileToLoad(model_format, place)


def _format_and_name(backend: Backend, config: Any | None) -> tuple[ModelFormat, str] | None:
    if backend.backend == "tensorflow":
        return _TENSORFLOW.get(backend.platform)
    if backend.backend == "fil":
        name = TREE_MODEL_FILES.get(tree_model_type(config))
        return None if name is None else ("tree", name)
    return _FORMATS.get(backend.backend)


def tree_model_type(config: Any | None) -> str:
    """Return the ``model_type`` of a model of the FIL backend."""
    parameters = {} if config is None else config.parameters
    return str(parameters["model_type"].string_value) if "model_type" in parameters else "xgboost"


def tree_row_size(tensor: Any, max_batch_size: int) -> int | None:
    """Return how many values a row of the input of the FIL backend has, or ``None`` if the size is
    variable.

    The first dimension of a request is the number of rows. ``dims`` contain it if
    ``max_batch_size`` is 0.
    """
    dims = list(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)
    row = dims if max_batch_size > 0 else dims[1:]
    return None if not dims or -1 in row else count_elements(row)


def _is_read_otherwise(model_format: ModelFormat, place: str, platform: str) -> bool:
    """OpenVINO also reads ONNX files; PyTorch and DALI also run Python code;
    PyTorch also reads .pt2.
    """
    if model_format == "torchscript":
        return place.endswith((".py", ".pt2")) or platform not in _LIBTORCH
    if model_format == "openvino":
        return not place.endswith(".xml")
    return model_format == "dali" and place.endswith(".py")


def describe_file(
    file: FileToLoad,
    version: Path,
    config: Any | None,
    image_version: str | None,
    complete_bytes: int | None,
    *,
    gpu_count: int | None = None,
    onnx_runtime: Asking = "never",
) -> ModelFile:
    """Describe the file in the folder ``version``;
    ``complete_bytes`` as in ``RepositoryContext``.
    """
    path = version / file.place
    note_path(str(path), file.place)
    if file.place.endswith("/") and os.path.isfile(path):
        path /= _FORMATS["onnxruntime"][1]  # the server takes such a path for a folder
    if file.format == "tree" and os.path.isdir(path):
        path /= TREE_MODEL_FILES[tree_model_type(config)]
    if file.format == "dali" and not os.path.exists(path) and (version / "dali.py").exists():
        return ModelFile(path, "dali", not_checked=("content not checked",))
    if complete_bytes is not None and os.path.isfile(path) and path.stat().st_size > complete_bytes:
        has_manifest = file.format == "tensorrt_plan" and _has_manifest(path)
        reason = "content not checked: it is in an archive"
        return ModelFile(path, file.format, not_checked=(reason,), has_manifest=has_manifest)
    has_library = config is not None and bool(config.model_operations.op_library_filename)
    return model_files.describe(
        path,
        image_version,
        model_format=file.format,
        has_op_library=has_library,
        on_cpu=gpu_count == 0 or _is_on_cpu(config),
        graph_level=0 if config is None else config.optimization.graph.level,
        onnx_runtime=onnx_runtime,
    )


def _has_manifest(path: Path) -> bool:
    from triton_model_check.model_files.plan_manifest import manifest_of_file

    return manifest_of_file(path, is_complete=False) is not None


def _is_on_cpu(config: Any | None) -> bool:
    groups = () if config is None else config.instance_group
    return bool(groups) and all(group.kind == group.KIND_CPU for group in groups)
