"""What an ONNX file says of its use: tensors, the metadata of the exporter, last operators."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.budget import OverBudgetError
from constructs_triton_core.untrusted.regular_files import explained
from triton_model_check.model_files.model_file import ModelFile, ModelTensor
from triton_model_check.model_files.onnx_graph import OnnxGraph, read_model
from triton_model_check.model_files.protobuf_wire import MessageFile, MessageReader, WireError

# ModelProto.metadata_props and its entries: onnx.proto of ONNX 1.16.
_METADATA_FIELD = 14
_KEY_FIELD = 1
_VALUE_FIELD = 2
_MOST_CLASSES = 100_000


@dataclass(frozen=True, slots=True)
class Network:
    """A network that reads pictures.

    Args:
        path: The file.
        inputs: Required inputs, as ``ModelFile`` has them.
        outputs: Outputs, with the shapes that the file declares where the runtime's are not
            certain: an exporter knows which size is the number of classes.
        metadata: What the exporter wrote, such as ``task`` and ``names`` of Ultralytics.
        last_operators: The operator that writes each output, by the name of the output.
    """

    path: Path
    inputs: tuple[ModelTensor, ...]
    outputs: tuple[ModelTensor, ...]
    metadata: Mapping[str, str]
    last_operators: Mapping[str, str]

    def labels(self) -> list[str]:
        """Return the names of the classes that the metadata has; empty if it has none.

        Ultralytics writes a dictionary of Python, such as ``{0: 'person', 1: 'bicycle'}``.
        """
        try:
            names = ast.literal_eval(self.metadata.get("names", ""))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return []
        if isinstance(names, dict):
            numbers = range(len(names))
            if sorted(names, key=str) != sorted(numbers, key=str) or len(names) > _MOST_CLASSES:
                return []
            names = [names[number] for number in numbers]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return []
        return [" ".join(name.split()) for name in names]


def read_network(file: ModelFile) -> Network:
    """Read the metadata and the last operators of the ONNX file that ``file`` describes.

    Raises:
        InvalidValueError: it is not an ONNX file, or cannot be read.
    """
    fix = "pass the ONNX file that your training framework exports"
    if file.format != "onnx":
        raise InvalidValueError(f"{file.path}: --task reads ONNX files, got {file.format}; {fix}")
    try:
        with explained(file.path, "cannot be read", fix), file.path.open("rb") as content:
            root = MessageFile(content).root()
            metadata = _metadata(root)
            graph = read_model(root).graph
    except (WireError, OverBudgetError) as error:
        raise InvalidValueError(f"{file.path}: {error}; {fix}") from None

    assert graph is not None  # ``file`` has no fault
    last_operators: dict[str, str] = {}
    for node in graph.nodes:
        for output in node.outputs:
            # An exporter may end a graph with a node that changes nothing.
            is_same = node.operator == "Identity" and node.inputs[0] in last_operators
            last_operators[output] = last_operators[node.inputs[0]] if is_same else node.operator
    required = tuple(tensor for tensor in file.inputs if not tensor.is_optional)
    return Network(file.path, required, _outputs(file, graph), metadata, last_operators)


def _outputs(file: ModelFile, graph: OnnxGraph) -> tuple[ModelTensor, ...]:
    declared = {value.name: value.shape for value in graph.outputs}
    outputs = []
    for tensor in file.outputs:
        shape = declared.get(tensor.name) if tensor.shape is None else tensor.shape
        outputs.append(replace(tensor, shape=shape))
    return tuple(outputs)


def _metadata(root: MessageReader) -> dict[str, str]:
    """Return the metadata of an ONNX model."""
    metadata = {}
    for field in root:
        if field.number == _METADATA_FIELD:
            key = value = ""
            for part in root.message(field):
                if part.number == _KEY_FIELD:
                    key = root.text(part)
                elif part.number == _VALUE_FIELD:
                    value = root.text(part)
            metadata[key] = value
    return metadata
