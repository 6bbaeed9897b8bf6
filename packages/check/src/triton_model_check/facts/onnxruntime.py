"""The ONNX Runtime of each Triton release, and what it can load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from constructs_triton_core.facts.versions import parse_version
from triton_model_check.facts.published import load


@dataclass(frozen=True, slots=True)
class OnnxRuntime:
    """One ONNX Runtime.

    ``max_opset`` is of the domain ``ai.onnx``, ``max_ml_opset`` of ``ai.onnx.ml``. ``since`` is the first
    Triton release with it. ``external_data_outside_folder`` is whether weights may be in a file outside the
    model's folder.
    """

    since: str
    version: str
    max_opset: int
    max_ml_opset: int
    max_ir_version: int
    supports_bf16: bool
    external_data_outside_folder: bool


@cache
def onnx_runtime(image_version: str | None) -> OnnxRuntime:
    """Return the ONNX Runtime of an image; of the newest release for ``None``.

    Releases before the first that is known get its limits, which are the least.
    """
    rows = [OnnxRuntime(**row) for row in load("onnxruntime")["releases"]]
    if image_version is None:
        return rows[-1]
    wanted = parse_version(image_version)
    return next((row for row in reversed(rows) if parse_version(row.since) <= wanted), rows[0])
