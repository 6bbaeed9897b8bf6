"""Breaks a valid ONNX model in the ways that a checker must find, with weights of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import onnx
from onnx import TensorProto, helper

_STANDARD = ("", "ai.onnx", "ai.onnx.ml")
_NOT_A_MODEL = "cut"
# Operators that need more than one input.
_WITH_WEIGHTS = frozenset(
    {"Add", "Conv", "Gather", "Gemm", "LSTM", "MatMul", "Mul", "ConvTranspose"}
)


def broken(model: Any) -> Iterator[tuple[str, bytes]]:
    """Yield each fault that the model can have: its name, and the bytes of the model with it."""
    for name, fault in _FAULTS.items():
        copied = onnx.ModelProto()
        copied.CopyFrom(model)
        if fault(copied):
            yield name, copied.SerializeToString()
    yield _NOT_A_MODEL, model.SerializeToString()[:-10]


def _operators(model: Any) -> list[Any]:
    return [
        each for each in model.graph.node if each.op_type != "Constant" and each.domain in _STANDARD
    ]


def _constants(model: Any) -> list[Any]:
    return [each for each in model.graph.node if each.op_type == "Constant"]


def _largest_weights(model: Any) -> Any:
    """Return the largest tensor of the graph, or an empty one."""
    tensors = [each.attribute[0].t for each in _constants(model) if each.attribute]
    tensors += model.graph.initializer
    return max(tensors, key=lambda each: each.ByteSize(), default=TensorProto())


def _unknown_operator(model: Any) -> bool:
    for node in _operators(model)[-1:]:
        node.op_type = "Frobnicate"
        return True
    return False


def _unknown_attribute(model: Any) -> bool:
    for node in _operators(model)[-1:]:
        node.attribute.append(helper.make_attribute("nonsense", 1))
        return True
    return False


def _unknown_attribute_of_constant(model: Any) -> bool:
    for node in _constants(model)[-1:]:
        node.attribute.append(helper.make_attribute("nonsense", 1))
        return True
    return False


def _wrong_attribute_type(model: Any) -> bool:
    for node in _operators(model):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.INT:
                attribute.CopyFrom(helper.make_attribute(attribute.name, 1.0))
                return True
    return False


def _no_required_attribute(model: Any) -> bool:
    opsets = {each.domain: each.version for each in model.opset_import}
    for node in _operators(model):
        if node.domain not in opsets or not onnx.defs.has(
            node.op_type, opsets[node.domain], node.domain
        ):
            continue
        schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
        required = {name for name, each in schema.attributes.items() if each.required}
        kept = [each for each in node.attribute if each.name not in required]
        if len(kept) < len(node.attribute):
            del node.attribute[:]
            node.attribute.extend(kept)
            return True
    return False


def _missing_input(model: Any) -> bool:
    for node in _operators(model)[-1:]:
        node.input[0] = "absent"
        return True
    return False


def _too_few_inputs(model: Any) -> bool:
    for node in _operators(model):
        if node.op_type in _WITH_WEIGHTS:
            del node.input[1:]
            return True
    return False


def _too_many_inputs(model: Any) -> bool:
    for node in _operators(model):
        if node.op_type in _WITH_WEIGHTS:
            node.input.extend([node.input[0]] * 12)
            return True
    return False


def _wrong_output_type(model: Any) -> bool:
    for each in model.graph.output[:1]:
        given = each.type.tensor_type.elem_type
        wrong = TensorProto.DOUBLE if given != TensorProto.DOUBLE else TensorProto.FLOAT
        each.type.tensor_type.elem_type = wrong
        return bool(given)
    return False


def _wrong_weight_type(model: Any) -> bool:
    weights = _largest_weights(model)
    weights.data_type, given = TensorProto.INT32, weights.data_type
    return bool(given == TensorProto.FLOAT and weights.HasField("raw_data"))


def _wrong_weight_dims(model: Any) -> bool:
    """Give the weights other dims with as many elements."""
    weights = _largest_weights(model)
    if len(weights.dims) < 2 or weights.dims[-1] % 2:
        return False
    weights.dims[-1] //= 2
    weights.dims[0] *= 2
    return True


def _missing_elements(model: Any) -> bool:
    weights = _largest_weights(model)
    if weights.dims:
        weights.dims[0] += 1
    return bool(weights.dims)


def _elements_twice(model: Any) -> bool:
    weights = _largest_weights(model)
    weights.float_data.append(1.0)
    return bool(weights.HasField("raw_data"))


def _too_new(model: Any) -> bool:
    model.opset_import[0].version = 99
    return True


def _same_output_twice(model: Any) -> bool:
    operators = _operators(model)
    if len(operators) > 1:
        operators[-1].output[0] = operators[0].output[0]
    return len(operators) > 1


_FAULTS: dict[str, Callable[[Any], bool]] = {
    each.__name__.removeprefix("_"): each
    for each in (
        _unknown_operator,
        _unknown_attribute,
        _unknown_attribute_of_constant,
        _wrong_attribute_type,
        _no_required_attribute,
        _missing_input,
        _too_few_inputs,
        _too_many_inputs,
        _wrong_output_type,
        _wrong_weight_type,
        _wrong_weight_dims,
        _missing_elements,
        _elements_twice,
        _too_new,
        _same_output_twice,
    )
}
