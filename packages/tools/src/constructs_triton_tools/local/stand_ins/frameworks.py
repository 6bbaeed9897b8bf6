"""The frameworks that run models in the place of backends that the bundled server lacks."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PACKAGES"]

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
