"""The frameworks of the stand-ins, and the packages that run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton.model_config.schema import new_model_config

__all__ = ["FRAMEWORKS", "PACKAGES", "Framework", "framework_package", "why_unsupported"]

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino"),
    "torch": ("torch",),
    "openvino": ("openvino",),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "lightgbm": ("lightgbm",),
    "treelite": ("treelite",),
}
"""The module that each framework is imported as, with the distributions that contain it."""


@dataclass(frozen=True, slots=True)
class Framework:
    """How a backend is replaced: the module with the code, and the package that it imports."""

    module: str
    package: str


FRAMEWORKS: Mapping[str, Framework] = {
    "onnxruntime": Framework("onnxruntime_model", "onnxruntime"),
}
"""The backends that have a stand-in."""

_PACKAGE_OF_MODEL_TYPE = {"lightgbm": "lightgbm", "treelite_checkpoint": "treelite"}


def framework_package(backend: str, config: Any | None) -> str:
    """Return the package that a model of this backend needs. FIL has several, chosen by ``model_type``."""
    parameters = {} if config is None else config.parameters
    model_type = parameters["model_type"].string_value if "model_type" in parameters else ""
    return _PACKAGE_OF_MODEL_TYPE.get(model_type, FRAMEWORKS[backend].package)


def why_unsupported(config: Any | None) -> str | None:
    """Return what a stand-in cannot do for this configuration; ``None`` if it can run the model."""
    given = new_model_config() if config is None else config
    if given.sequence_batching.state:
        return "keeps implicit state (sequence_batching.state), which Triton's Python backend cannot"
    if given.batch_input or given.batch_output or any(each.allow_ragged_batch for each in given.input):
        return "has ragged batches (allow_ragged_batch, batch_input or batch_output)"
    return None
