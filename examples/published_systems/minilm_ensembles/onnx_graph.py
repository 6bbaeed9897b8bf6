"""Writes the encoder of BERT as an ONNX graph: the step that TensorRT compiles and ONNX Runtime
runs.

The graph is built from the weights, operator by operator. PyTorch's exporter would do the same, but
needs PyTorch. Opset 17 is the first with LayerNormalization, and TensorRT 8.6 and newer read it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

__all__ = ["write_encoder"]

OPSET = 17
IR_VERSION = 8  # the one of opset 17's time, so that older runtimes read the file too
#: Added to the scores of padding, so that their exponential is zero.
MASKED = -1e9


def write_encoder(model: Path, target: Path) -> None:
    """Write ``target`` from the folder ``model`` with ``config.json`` and ``model.safetensors``.

    Inputs ``input_ids`` and ``attention_mask``, INT32 [batch, sequence]; output
    ``token_embeddings``, FP32 [batch, sequence, hidden]. Both axes are dynamic. Token types are all
    0: one sentence, not a pair.
    """
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    graph = _Encoder(config, load_file(model / "model.safetensors")).build()
    opset = [helper.make_opsetid("", OPSET)]
    proto = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
    onnx.checker.check_model(proto)
    onnx.save(proto, str(target))


class _Encoder:
    def __init__(
        self, config: dict[str, int | str], weights: dict[str, NDArray[np.float32]]
    ) -> None:
        self.layers, self.heads = (
            int(config["num_hidden_layers"]),
            int(config["num_attention_heads"]),
        )
        self.hidden, self.epsilon = int(config["hidden_size"]), float(config["layer_norm_eps"])
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def build(self) -> onnx.GraphProto:
        mask = self._attention_bias()
        states = self._embeddings()
        for number in range(self.layers):
            states = self._layer(f"encoder.layer.{number}", states, mask)
        self.nodes.append(helper.make_node("Identity", [states], ["token_embeddings"]))
        axes = ["batch", "sequence"]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT32, axes)
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info(
            "token_embeddings", TensorProto.FLOAT, [*axes, self.hidden]
        )
        return helper.make_graph(self.nodes, "bert", inputs, [output], [*self.constants.values()])

    # --- the parts of BERT ------------------------------------------------------------------------

    def _embeddings(self) -> str:
        words = self._op("Gather", self._weight("embeddings.word_embeddings.weight"), "input_ids")
        table = self._weight("embeddings.position_embeddings.weight")
        length = self._op("Shape", "input_ids", start=1, end=2)
        positions = self._op("Slice", table, self._integers(0), length, self._integers(0))
        first_type = self.weights["embeddings.token_type_embeddings.weight"][0]
        types = self._constant("token_type", first_type)
        total = self._op("Add", self._op("Add", words, positions), types)
        return self._layer_norm("embeddings.LayerNorm", total)

    def _attention_bias(self) -> str:
        """0 for a token, ``MASKED`` for padding, [batch, 1, 1, sequence]."""
        kept = self._op("Cast", "attention_mask", to=TensorProto.FLOAT)
        padding = self._op("Sub", self._number(1.0), kept)
        return self._op(
            "Unsqueeze", self._op("Mul", padding, self._number(MASKED)), self._integers(1, 2)
        )

    def _layer(self, name: str, states: str, mask: str) -> str:
        context = self._attention(f"{name}.attention.self", states, mask)
        attended = self._linear(f"{name}.attention.output.dense", context)
        states = self._layer_norm(
            f"{name}.attention.output.LayerNorm", self._op("Add", attended, states)
        )
        inner = self._gelu(self._linear(f"{name}.intermediate.dense", states))
        outer = self._linear(f"{name}.output.dense", inner)
        return self._layer_norm(f"{name}.output.LayerNorm", self._op("Add", outer, states))

    def _attention(self, name: str, states: str, mask: str) -> str:
        queries = self._heads(self._linear(f"{name}.query", states), [0, 2, 1, 3])
        keys = self._heads(self._linear(f"{name}.key", states), [0, 2, 3, 1])
        values = self._heads(self._linear(f"{name}.value", states), [0, 2, 1, 3])
        scale = self._number((self.hidden / self.heads) ** -0.5)
        scores = self._op("Add", self._op("Mul", self._op("MatMul", queries, keys), scale), mask)
        mixed = self._op("MatMul", self._op("Softmax", scores, axis=-1), values)
        return self._op(
            "Reshape",
            self._op("Transpose", mixed, perm=[0, 2, 1, 3]),
            self._integers(0, 0, self.hidden),
        )

    def _heads(self, states: str, order: list[int]) -> str:
        shape = self._integers(
            0, 0, self.heads, self.hidden // self.heads
        )  # 0 keeps an axis as it is
        return self._op("Transpose", self._op("Reshape", states, shape), perm=order)

    def _linear(self, name: str, states: str) -> str:
        # PyTorch stores a layer's weights as [out, in].
        weight = self._constant(
            f"{name}.weight", np.ascontiguousarray(self.weights[f"{name}.weight"].T)
        )
        return self._op("Add", self._op("MatMul", states, weight), self._weight(f"{name}.bias"))

    def _layer_norm(self, name: str, states: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._op("LayerNormalization", states, scale, shift, axis=-1, epsilon=self.epsilon)

    def _gelu(self, states: str) -> str:
        """Exact GELU with the error function, because opset 17 has no GELU operator."""
        halves = self._op("Erf", self._op("Mul", states, self._number(2**-0.5)))
        share = self._op("Mul", self._op("Add", halves, self._number(1.0)), self._number(0.5))
        return self._op("Mul", states, share)

    # --- nodes and constants ----------------------------------------------------------------------

    def _op(self, kind: str, *inputs: str, **attributes: object) -> str:
        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def _weight(self, name: str) -> str:
        return self._constant(name, self.weights[name])

    def _number(self, value: float) -> str:
        return self._constant(f"number {value!r}", np.float32(value))

    def _integers(self, *values: int) -> str:
        return self._constant(f"integers {values!r}", np.array(values, dtype=np.int64))

    def _constant(self, name: str, value: NDArray[np.generic] | np.float32) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name
