"""Whether the process of a Python model creates a CUDA context, and on which GPU.

Triton's stub process creates none itself (python_backend src/pb_utils.cc,
CUDAHandler::MaybeSetDevice). A framework does at its first use of a GPU, not when it is imported.
TensorFlow counts only with the name of a GPU, since many of its builds use none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from triton_model_check.model.module_index import ModuleIndex

_CUDA_DEVICE = re.compile(r"cuda(:\d*)?")
_OF_TORCH = frozenset(
    {
        "accelerate",
        "diffusers",
        "sentence_transformers",
        "torch",
        "torchvision",
        "transformers",
        "ultralytics",
    }
)
_TENSORFLOW_DEVICE = re.compile(r"/?(device:)?gpu:\d+", re.IGNORECASE)
_PROVIDERS = frozenset({"CUDAExecutionProvider", "TensorrtExecutionProvider"})
_HIDES_GPUS = "CUDA_VISIBLE_DEVICES"
_OWN_GPU = "model_instance_device_id"


class GpuUseOfCode(NamedTuple):
    """The framework that uses a GPU, and whether it is the GPU of the instance.

    ``follows_instance``: whether the code asks Triton for its GPU. A framework takes GPU 0 by
    default, whatever the instance has.
    """

    framework: str
    follows_instance: bool


def gpu_use_of(index: ModuleIndex) -> GpuUseOfCode | None:
    """Return which framework uses a GPU; ``None`` if the file does not show it."""
    texts = {node.value for node in index.of(ast.Constant) if isinstance(node.value, str)}
    if _HIDES_GPUS in texts:
        return None
    framework = next(_frameworks(index, texts), None)
    return None if framework is None else GpuUseOfCode(framework, _OWN_GPU in texts)


def _frameworks(index: ModuleIndex, texts: set[str]) -> Iterator[str]:
    """Yield the frameworks by which a file certainly uses a GPU."""
    imported = dict(_imported(index))
    modules = {module: name for name, module in imported.items()}
    if not _OF_TORCH.isdisjoint(modules) and _names_cuda(index, texts):
        yield "torch"
    if "onnxruntime" in modules and not _PROVIDERS.isdisjoint(texts):
        yield "onnxruntime"

    if "tensorflow" in modules and any(map(_TENSORFLOW_DEVICE.fullmatch, texts)):
        yield "tensorflow"
    # `cupy = None` says that the model also works without it.
    cupy = modules.get("cupy")
    if cupy is not None and cupy not in index.stored_names and _has_attribute(index, cupy):
        yield "cupy"


def _names_cuda(index: ModuleIndex, texts: set[str]) -> bool:
    """Return whether a file names the device ``cuda``, or calls ``.cuda()``."""
    if any(_CUDA_DEVICE.fullmatch(text) for text in texts):
        return True
    called = (node.func for node in index.of(ast.Call))
    return any(
        isinstance(function, ast.Attribute) and function.attr == "cuda" for function in called
    )


def _has_attribute(index: ModuleIndex, name: str) -> bool:
    """Return whether a file uses something of a module, and not only imports it."""
    values = (node.value for node in index.of(ast.Attribute))
    return any(isinstance(value, ast.Name) and value.id == name for value in values)


def _imported(index: ModuleIndex) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bind, each with the package that it is from."""
    for node in index.of(ast.Import):
        for alias in node.names:
            package = alias.name.partition(".")[0]
            yield alias.asname or package, package
    for found in index.of(ast.ImportFrom):
        if found.module is not None and not found.level:
            for alias in found.names:
                yield alias.asname or alias.name, found.module.partition(".")[0]
