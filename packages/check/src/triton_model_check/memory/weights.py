"""The bytes of a model's weights, as its files say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from triton_model_check.memory.instances import HOST
from triton_model_check.model_files.model_file import ModelFile

_WHOLE_FILES = frozenset({"tensorrt_plan", "torchscript", "torch_package"})
"""Formats whose file has about the size of the weights in memory."""
_WEIGHT_FILES = (
    ".bin",
    ".ckpt",
    ".engine",
    ".gguf",
    ".h5",
    ".joblib",
    ".npy",
    ".npz",
    ".onnx",
    ".pkl",
    ".plan",
    ".pt",
    ".pth",
    ".safetensors",
)
"""How the names of files end from which the code of a model loads its weights."""
_VARIABLES = "variables.data-"
_LEGACY_TREES = "xgboost.model"
"""XGBoost's former binary format, whose size in memory is not settled."""
_IN_HOST_MEMORY = frozenset({"fil"})
"""Backends that hold the model of each instance in host memory, wherever the instance runs."""
_CHOOSES_DEVICE = frozenset({"tensorflow"})
"""Backends whose graph chooses where its variables are, with a GPU."""
_SMALLEST = 2**20
_MOST_FILES = 10_000


class StoredWeights(NamedTuple):
    """Files of weights whose use is not known: their bytes, the largest, and how many others."""

    size: int
    largest: str
    others: int

    @property
    def names(self) -> str:
        """The largest file and the number of the others."""
        others = self.others
        if not others:
            return self.largest
        return f"{self.largest} and {others} other file{'s' if others > 1 else ''}"


def weight_bytes(file: ModelFile) -> int | None:
    """Return the bytes of the weights of a model file; ``None`` if they are not known.

    A file that is absent is not known, not empty. Pipelines of DALI have another size in memory
    than on disk. A forest takes the size of its file at least, and a session of TensorFlow that of
    all variables of the SavedModel: see ``sharing.fil`` and ``sharing.tensorflow`` of
    ``memory.json``.

    The package of an AOTInductor model is a zip archive that is not compressed, with the weights in
    its library.
    """
    if file.format == "onnx":
        return _sum(_size(file.path), file.external_bytes)
    if file.format == "openvino":
        return _sum(0, *(_size(file.path.parent / name) for name in file.data_files))
    if file.format == "savedmodel":
        return _variables(file.path / "variables")
    is_forest = file.format == "tree" and file.path.name != _LEGACY_TREES
    return _size(file.path) if is_forest or file.format in _WHOLE_FILES else None


def bytes_on_disk(file: ModelFile) -> int:
    """Return the bytes of a model file and of its data; of a SavedModel, of its folder."""
    if file.path.is_dir():
        return sum(entry.stat().st_size for entry in _files_below(file.path))
    names = (file.path.parent / name for name in file.data_files)
    return sum(filter(None, map(_size, (file.path, *names))))


def stored_weights(folder: Path) -> StoredWeights | None:
    """Return the files of weights in the folder of a model; ``None`` below 1 MiB.

    They say how large the weights are that ``model.py`` can load, not whether it loads them, of
    which type and where.
    """
    sizes = {
        os.path.relpath(entry.path, folder): entry.stat().st_size
        for entry in _files_below(folder)
        if entry.name.endswith(_WEIGHT_FILES)
    }
    total = sum(sizes.values())
    if total < _SMALLEST:
        return None
    largest = max(sizes, key=lambda name: sizes[name])
    return StoredWeights(total, Path(largest).as_posix(), len(sizes) - 1)


def converts_weights(config: Any) -> bool:
    """Return whether another engine takes the place of ONNX Runtime's weights on the GPU.

    TensorRT builds an engine at load, often of half the precision.
    """
    return bool(config.optimization.execution_accelerators.gpu_execution_accelerator)


def weight_places(backend: str, instances: Mapping[str, int]) -> tuple[dict[str, int], str]:
    """Return how many instances have weights at each place, and what is not known of the others.

    ``instances`` are the instances that run at each place.
    """
    on_gpus = sum(count for place, count in instances.items() if place != HOST)
    if backend in _IN_HOST_MEMORY:
        everywhere = {HOST: sum(instances.values())}
        return everywhere, "the form of its trees on the GPU" if on_gpus else ""
    if backend in _CHOOSES_DEVICE and on_gpus:
        on_host = {place: count for place, count in instances.items() if place == HOST}
        return on_host, "its variables on the GPU, where the graph chooses the device of each"
    return dict(instances), ""


def weight_copies(
    backend: str, parameters: Mapping[str, Any], facts: Mapping[str, Any], instances: int
) -> int:
    """Return how many times instances at one place have the weights.

    ``facts`` are ``sharing`` of ``memory.json``, which has the source for each backend.
    """
    known = facts.get(backend, {})
    if known.get("weights") in ("gpu", "model"):
        return 1
    choice = known.get("parameter", {})
    name = choice.get("name", "")
    given = parameters[name].string_value if name in parameters else ""
    if choice.get("weights") == "count" and given.isdecimal() and len(given) < 6:
        return -(-instances // max(1, int(given)))
    if given and given.lower() in choice.get("values", ()):
        return 1
    return instances


def _variables(folder: Path) -> int | None:
    sizes = [
        entry.stat().st_size for entry in _files_below(folder) if entry.name.startswith(_VARIABLES)
    ]
    return sum(sizes) if sizes else None


def _files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files in a folder and below it, without following links; at most 10,000."""
    return islice(_walk(folder), _MOST_FILES)


def _walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder, without those of folders that cannot be read."""
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_file():
                        yield entry
        except OSError:
            continue


def _sum(*sizes: int | None) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):
        return None
