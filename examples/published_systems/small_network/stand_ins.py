"""Stand-ins for model files that do not exist yet, so that the stacks can be synthesized without them.

An endpoint needs its model files. The stand-ins have the formats that are checked, but no model: replace
them before you deploy.
"""

from __future__ import annotations

import io
import zipfile

__all__ = ["dali_pipeline", "onnx_model", "tensorrt_plan", "torchscript"]


def onnx_model(name: str, shape: list[int], output: str, classes: int) -> bytes:
    """Return an ONNX model with one picture as its input and scores as its output."""
    from onnx import TensorProto, helper  # noqa: PLC0415 - only for this

    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", classes])]
    weights = helper.make_tensor(
        "weights", TensorProto.FLOAT, [shape[-1], classes], [0.0] * shape[-1] * classes
    )
    nodes = [
        helper.make_node("ReduceMean", [name], ["means"], axes=[1, 2], keepdims=0),
        helper.make_node("MatMul", ["means", "weights"], [output]),
    ]
    graph = helper.make_graph(nodes, "stand_in", inputs, outputs, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def torchscript(arguments: str) -> bytes:
    """Return a TorchScript archive whose ``forward`` has these arguments."""
    code = (
        "class StandIn(Module):\n"
        f"  def forward(self: __torch__.StandIn,\n    {arguments}) -> Tensor:\n    return torch.zeros([1])\n"
    )
    members = {
        "constants.pkl": b"\x80\x02).",
        "data.pkl": b"\x80\x02c__torch__\nStandIn\nq\x00)\x81.",
        "code/__torch__.py": code.encode(),
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(f"stand_in/{name}"), data)
    return content.getvalue()


def tensorrt_plan() -> bytes:
    """Return the header of a TensorRT plan."""
    return b"ftrt" + bytes(24)


def dali_pipeline() -> bytes:
    """Return the beginning of a serialized DALI pipeline."""
    return b"\x0a\x08stand_in"
