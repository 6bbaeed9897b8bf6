"""Sample repositories for the tests of packing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from triton_model_check.model_repository import ModelRepository

ENSEMBLE_CONFIG = b"""
platform: "ensemble"
input [{ name: "x" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [1] }]
ensemble_scheduling { step [{
  model_name: "net" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }] }
"""
MODEL_CONFIG = """backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
"""
MODEL_CODE = "class TritonPythonModel:\n    def execute(self, requests): ...\n"


def write_repository(root: Path, files: Mapping[str, bytes]) -> ModelRepository:
    """Write files, by path, below ``root`` and read it as a repository."""
    root.mkdir(exist_ok=True)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return ModelRepository.from_directory(root)


def write_models(directory: Path, *names: str) -> Path:
    """Write Python backend models that Triton would load."""
    for name in names:
        (directory / name / "1").mkdir(parents=True)
        (directory / name / "config.pbtxt").write_text(MODEL_CONFIG)
        (directory / name / "1" / "model.py").write_text(MODEL_CODE)
    return directory
