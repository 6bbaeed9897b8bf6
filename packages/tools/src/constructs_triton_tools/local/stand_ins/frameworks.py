"""The frameworks of the stand-ins, and the packages that run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_model_check.model_config.schema import new_model_config

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino"),
    "torch": ("torch",),
    "openvino": ("openvino",),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "lightgbm": ("lightgbm",),
    "treelite": ("treelite",),
    "nvidia.dali": ("nvidia-dali-cuda120", "nvidia-dali-cuda130", "nvidia-dali-cuda110"),
}
"""The module that each framework is imported as, with the distributions that contain it."""


@dataclass(frozen=True, slots=True)
class Framework:
    """How a backend is replaced: the module with the code, and the package that it imports."""

    module: str
    package: str


FRAMEWORKS: Mapping[str, Framework] = {
    "onnxruntime": Framework("onnxruntime_model", "onnxruntime"),
    "pytorch": Framework("pytorch_model", "torch"),
    "openvino": Framework("openvino_model", "openvino"),
    "fil": Framework("fil_model", "treelite"),
    "dali": Framework("dali_model", "nvidia.dali"),
}
"""The backends that have a stand-in."""

# XGBoost reads its old binary format, FIL's default, no longer; Treelite does.
_PACKAGE_OF_MODEL_TYPE = {"xgboost_json": "xgboost", "xgboost_ubj": "xgboost", "lightgbm": "lightgbm"}


def framework_package(backend: str, config: Any | None) -> str:
    """Return the module that a model of this backend needs. FIL has several, chosen by ``model_type``."""
    if backend != "fil":
        return FRAMEWORKS[backend].package
    parameters = {} if config is None else config.parameters
    model_type = parameters["model_type"].string_value if "model_type" in parameters else ""
    return _PACKAGE_OF_MODEL_TYPE.get(model_type, FRAMEWORKS[backend].package)


def distribution(module: str) -> str:
    """Return what `pip install` is called with for a module."""
    return PACKAGES[module][0]


def why_unsupported(config: Any | None) -> str | None:
    """Return what a stand-in cannot do for this configuration; ``None`` if it can run the model."""
    given = new_model_config() if config is None else config
    if given.runtime:
        return f"sets runtime: {given.runtime!r}, which chooses a library of the backend"
    if given.sequence_batching.state:
        return "keeps implicit state (sequence_batching.state), which Triton's Python backend cannot"
    if given.batch_input or given.batch_output or any(each.allow_ragged_batch for each in given.input):
        return "has ragged batches (allow_ragged_batch, batch_input or batch_output)"
    return None
