"""Measures how much longer an endpoint takes to start with a stand-in than with an empty Python
model.

    python benchmarks/stand_ins.py                                # a small ONNX model
    python benchmarks/stand_ins.py REPOSITORY MODEL [PYTHON]      # your own model

Both endpoints have one model with one instance. The starts alternate, and the shortest of each is
compared, because other programs only make a start longer.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from constructs_triton_tools.local import LocalEndpoint

_STARTS = 5
_CONFIG = """
backend: "{backend}"
max_batch_size: 8
input [ {{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }} ]
output [ {{ name: "Y" data_type: TYPE_FP32 dims: [ 3 ] }} ]
"""
_MODEL = """
import triton_python_backend_utils


class TritonPythonModel:
    def execute(self, requests):
        return []
"""


def _write_python(folder: Path) -> Path:
    (folder / "empty" / "1").mkdir(parents=True)
    (folder / "empty" / "config.pbtxt").write_text(_CONFIG.format(backend="python"))
    (folder / "empty" / "1" / "model.py").write_text(_MODEL)
    return folder


def _write_onnx(folder: Path) -> Path:
    from onnx import TensorProto, helper, save  # noqa: PLC0415 - only for the default model

    rows = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["b", 4])
    scores = helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["b", 3])
    weights = helper.make_tensor("W", TensorProto.FLOAT, [4, 3], [1.0] * 12)
    product = helper.make_node("MatMul", ["X", "W"], ["Y"])
    graph = helper.make_graph([product], "linear", [rows], [scores], [weights])
    (folder / "linear" / "1").mkdir(parents=True)
    (folder / "linear" / "config.pbtxt").write_text(_CONFIG.format(backend="onnxruntime"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    save(model, folder / "linear" / "1" / "model.onnx")
    return folder


def _seconds(repository: Path, model: str, python: str | None) -> float:
    start = time.perf_counter()
    with LocalEndpoint.from_repository(repository, model=model, python=python):
        return time.perf_counter() - start


def main() -> None:
    """Print the shortest start of each, and the difference."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repository", nargs="?", type=Path, metavar="REPOSITORY")
    parser.add_argument("model", nargs="?", metavar="MODEL")
    parser.add_argument("python", nargs="?", metavar="PYTHON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repository, model = arguments.repository, arguments.model
        if repository is None:
            repository, model = _write_onnx(folder / "onnx"), "linear"
        elif model is None:
            parser.error("MODEL: is missing; name a model of REPOSITORY")
        empty = _write_python(folder / "python")
        chosen = arguments.python
        starts = [
            (_seconds(empty, "empty", chosen), _seconds(repository, model, chosen))
            for _ in range(_STARTS)
        ]
    without, with_stand_in = (min(times) for times in zip(*starts, strict=True))
    print(f"empty Python model: {without:.2f} s until the endpoint is ready")
    print(f"{model} with its stand-in: {with_stand_in:.2f} s")
    print(f"the stand-in adds {with_stand_in - without:.2f} s")


if __name__ == "__main__":
    main()
