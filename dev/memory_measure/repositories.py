"""The models that are measured: small files, and weights of a size that is known."""

from __future__ import annotations

from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, external_data_helper, helper, numpy_helper

WEIGHT_BYTES = 256 * 2**20
"""Large beside everything else that a process holds, and it fits on a small machine."""

_LAYERS = 4
_WIDTH = 4096
_CONFIG = """backend: "{backend}"
input {{ name: "x" data_type: TYPE_FP32 dims: [ -1, {width} ] }}
output {{ name: "y" data_type: TYPE_FP32 dims: [ -1, {width} ] }}
instance_group {{ count: {count} kind: {kind} }}
"""

PYTHON_MODEL = """import triton_python_backend_utils as pb_utils
{imports}

class TritonPythonModel:
    def initialize(self, args):
{initialize}

    def execute(self, requests):
        answers = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "x")
            output = pb_utils.Tensor("y", tensor.as_numpy())
            answers.append(pb_utils.InferenceResponse([output]))
        return answers
"""


def write_python(repository: Path, initialize: str, count: int, imports: str = "") -> None:
    """Write a model ``m`` that returns its input; ``initialize`` is what each instance does."""
    body = PYTHON_MODEL.format(imports=imports, initialize=f"        {initialize}")
    _write(repository, "python", count, "KIND_CPU", width=1)
    (repository / "m" / "1" / "model.py").write_text(body, "utf-8")


def write_onnx(repository: Path, *, external: bool, count: int, kind: str) -> None:
    """Write a model ``m`` for the ONNX Runtime backend."""
    _write(repository, "onnxruntime", count, kind, width=_WIDTH)
    write_weights(repository / "m" / "1" / "model.onnx", external=external)


def _write(repository: Path, backend: str, count: int, kind: str, width: int) -> None:
    folder = repository / "m" / "1"
    folder.mkdir(parents=True)
    config = _CONFIG.format(backend=backend, count=count, kind=kind, width=width)
    (repository / "m" / "config.pbtxt").write_text(config, "utf-8")


def write_weights(path: Path, *, external: bool) -> None:
    """Write an ONNX model of four matrix products, with 64 MiB of FP32 weights each."""
    generator = numpy.random.default_rng(0)
    nodes, weights = [], []
    name = "x"
    for number in range(_LAYERS):
        matrix = generator.random((_WIDTH, _WIDTH), dtype=numpy.float32)
        weights.append(numpy_helper.from_array(matrix, f"w{number}"))
        result = "y" if number == _LAYERS - 1 else f"h{number}"
        nodes.append(helper.make_node("MatMul", [name, f"w{number}"], [result]))
        name = result

    tensors = [
        helper.make_tensor_value_info(tensor, TensorProto.FLOAT, ["batch", _WIDTH])
        for tensor in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    if external:
        external_data_helper.convert_model_to_external_data(model, location="weights.bin")
    onnx.save_model(model, path)
