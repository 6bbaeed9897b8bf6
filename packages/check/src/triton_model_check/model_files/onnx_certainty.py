"""Decides which of the inferred sizes every ONNX Runtime infers, too.

ONNX Runtime uses the inference functions of the ``onnx`` package. But it also computes constants
before it infers shapes, and it follows the values of shapes differently in each version. So a size
that depends on a computed value may be a number for the runtime where the package finds none, and
the other way round. What is certain:

- a number that the package infers without following any value;
- a variable size that is the size of an input, whatever a runtime computes;
- a variable size that depends on sizes of inputs only, and on no computed value.

Measured with ``dev/onnx_corpus/random_graphs.py`` and eight ONNX Runtimes from 1.15 to 1.32.

It runs in the process of ``onnx_inference``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

__all__ = ["INPUT_SIZE", "name_input_sizes", "uncertain_sizes"]

INPUT_SIZE = "size of input "
"""How the name of a variable size of an input begins. No file has such a name by chance."""

_REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
# The inputs of operators whose values decide on the shape of the output.
_SHAPE_INPUTS: Mapping[str, Collection[int]] = {
    **dict.fromkeys(_REDUCTIONS, (1,)),
    **dict.fromkeys(("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow"), (0,)),
    **dict.fromkeys(("AffineGrid", "CenterCropPad", "Expand", "OneHot", "Reshape"), (1,)),
    **dict.fromkeys(("Split", "Squeeze", "TopK", "Unsqueeze", "Upsample"), (1,)),
    "Col2Im": (1, 2),
    "DFT": (1, 2),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Tile": (1, 2),
}
# Operators whose output has as many elements as values of the input have a property.
_COUNTING = frozenset(
    {"Compress", "ImageDecoder", "NonMaxSuppression", "NonZero", "StringSplit", "Unique"}
)
# Operators with graphs, which are not looked into, and those of sequences.
_NOT_FOLLOWED = frozenset(
    {
        *("ConcatFromSequence", "If", "Loop", "OptionalGetElement", "Scan", "SequenceAt"),
        *("SequenceConstruct", "SequenceErase", "SequenceInsert", "SequenceMap"),
        "SplitToSequence",
    }
)
_SIZES_OF_A_TENSOR = frozenset({"Shape", "Size"})


def name_input_sizes(model: Any) -> None:
    """Give each variable size of an input a name, so that it is found again in other shapes."""
    for index, given in enumerate(model.graph.input):
        for axis, dim in enumerate(given.type.tensor_type.shape.dim):
            if dim.HasField("dim_param") and dim.dim_param:
                dim.dim_param = f"{INPUT_SIZE}{dim.dim_param}"
            elif not dim.HasField("dim_value") or dim.dim_value < 0:
                dim.dim_param = f"{INPUT_SIZE}{index} {axis}"


def uncertain_sizes(inferred: Any, followed: Any) -> dict[str, Collection[int] | None]:
    """Return the outputs with sizes that a runtime may infer otherwise, and which sizes these are.

    ``None`` means that the number of sizes is not certain.

    Args:
        inferred: The model with the shapes that are inferred without following values.
        followed: Returns the model with the shapes that are inferred with values, and without the
            shapes that the file declares; it is called if there is something to find in them.
    """
    depending = _depending_on_values(inferred)
    outputs = [each for each in inferred.graph.output if each.name in depending]
    if not outputs:
        return {}
    with_values = {each.name: each for each in followed().graph.output}
    found: dict[str, Collection[int] | None] = {}
    for each in outputs:
        if not each.type.tensor_type.HasField("shape"):
            found[each.name] = None
            continue
        uncertain = list(_uncertain(each, with_values[each.name]))
        if uncertain:
            found[each.name] = uncertain
    return found


def _uncertain(output: Any, with_values: Any) -> Iterator[int]:
    """Yield the axes of an output whose size is neither fixed nor that of an input.

    ``with_values`` is the same output in a model in which each size of an input has a name that
    begins with ``INPUT_SIZE``, after shapes were inferred once more.
    """
    dims = output.type.tensor_type.shape.dim
    dims_with_values = with_values.type.tensor_type.shape.dim
    is_same_rank = len(dims) == len(dims_with_values)
    for axis, dim in enumerate(dims):
        if dim.HasField("dim_value"):
            continue
        is_of_input = is_same_rank and dims_with_values[axis].dim_param.startswith(INPUT_SIZE)
        if not is_of_input:
            yield axis


def _depending_on_values(inferred: Any) -> set[str]:
    """Return the tensors with an unknown size that may depend on a computed value."""
    graph = inferred.graph
    inputs = {tensor.name for tensor in graph.input}
    initializers = {tensor.name for tensor in graph.initializer}
    constants: set[str] = set()
    for node in graph.node:
        if node.op_type == "Constant":
            constants.update(node.output)
    # Neither a constant nor an input of the model is computed, but one that is both may be either.
    given = constants | (initializers ^ inputs)
    known = constants | initializers | _tensors_of_known_size(graph)

    varying = set(inputs)  # what differs from request to request
    depending: set[str] = set()
    for node in graph.node:
        read = {name for name in node.input if name}
        if node.op_type not in _SIZES_OF_A_TENSOR and not varying.isdisjoint(read):
            varying.update(node.output)
        if not depending.isdisjoint(read) or _depends(node, given, varying):
            depending.update(name for name in node.output if name not in known)
    return depending


def _tensors_of_known_size(graph: Any) -> set[str]:
    """Return the names of the tensors whose declared or inferred sizes are all known."""
    values = (*graph.input, *graph.value_info, *graph.output)
    return {value.name for value in values if _is_known(value.type.tensor_type)}


def _is_known(tensor_type: Any) -> bool:
    has_shape = tensor_type.HasField("shape")
    return has_shape and all(dim.HasField("dim_value") for dim in tensor_type.shape.dim)


def _depends(node: Any, given: Collection[str], requested: Collection[str]) -> bool:
    """Whether sizes of the outputs depend on a value that a runtime may compute."""
    if node.op_type in _NOT_FOLLOWED:
        return True
    if node.op_type in _COUNTING:
        return not any(name in requested for name in node.input)
    return any(
        index < len(node.input) and node.input[index] and node.input[index] not in given
        for index in _SHAPE_INPUTS.get(node.op_type, ())
    )
