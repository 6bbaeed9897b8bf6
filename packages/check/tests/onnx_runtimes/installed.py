"""Makes the installed ONNX Runtime that of every image, so that it is the one that is asked."""

from __future__ import annotations

from dataclasses import replace

import onnxruntime
import pytest

from triton_model_check.facts import backend_releases
from triton_model_check.model_files import onnx_file
from triton_model_check.model_repository.kept import kept_repository


def use_runtime(patch: pytest.MonkeyPatch, version: str = onnxruntime.__version__) -> None:
    """Let every image have the ONNX Runtime of a version."""
    newest = backend_releases.onnx_runtime(None)
    assert newest is not None
    runtime = replace(newest, version=version)
    for module in (onnx_file, kept_repository):
        patch.setattr(module, "onnx_runtime", lambda _: runtime)
