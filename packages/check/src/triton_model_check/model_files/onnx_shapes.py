"""Infers the shapes of an ONNX model's outputs with the ``onnx`` package, without reading the
weights.

The backend compares the configuration with the shapes that ONNX Runtime infers, not with those that
the file declares (rule I4). ONNX Runtime uses the inference functions of the ``onnx`` package. A
small file can make them take any time and memory, so they run in a process with limits.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from constructs_triton_core.spelling import quoted
from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.model_files.protobuf_wire import Field, MessageReader
from triton_model_check.model_files.varint import encode_varint
from triton_model_check.untrusted.elsewhere import note_limit

if TYPE_CHECKING:
    from constructs_triton_core.processes.bounded_process import BoundedProcess

Shape = tuple[int, ...] | None
_LARGEST_KEPT_BYTES = 1024
_LARGEST_TABLE_BYTES = 64 << 10
_SMALL_FILE_BYTES = 256 << 10
_LARGEST_SKELETON_BYTES = 32 << 20
_LARGEST_REMEMBERED_BYTES = 1 << 20
_MOST_MESSAGES_DEEP = 100
# What the process may take: ten times what a graph of 57,000 operators needs.
_SECONDS, _SECONDS_PER_MIB = 1, 1
_MEMORY_BYTES, _MEMORY_PER_BYTE = 128 << 20, 32
_NOT_CHECKED = "operators and output shapes not checked"
# Fields of onnx.proto: those that lead to tensors, those that hold a tensor's elements,
# documentation.
_DIMS, _DATA_TYPE = 1, 2
_ELEMENTS = frozenset({4, 5, 6, 7, 9, 10, 11})
_TENSOR: dict[int, Any] = {}
_SPARSE_TENSOR = {1: _TENSOR, 2: _TENSOR}
_INTEGERS = frozenset({6, 7})  # the types of shapes: int32 and int64
# At least one element of any type: the package checks which field has them.
_ONE_ELEMENT = bytes(16)
_IS_ELSEWHERE = encode_varint(14 << 3) + encode_varint(1)  # data_location: EXTERNAL
_GRAPH: dict[int, Any] = {5: _TENSOR, 15: _SPARSE_TENSOR}
_ATTRIBUTE = {
    5: _TENSOR,
    6: _GRAPH,
    10: _TENSOR,
    11: _GRAPH,
    22: _SPARSE_TENSOR,
    23: _SPARSE_TENSOR,
}
_NODE = {5: _ATTRIBUTE}
_GRAPH[1] = _NODE
_MODEL = {7: _GRAPH, 25: {7: _NODE}}


@dataclass(frozen=True, slots=True)
class Inference:
    """The shapes of the outputs by name, or why there are none.

    ``fault`` is why the runtime refuses an operator or a type. A shape of ``None`` has rank 0 or is
    unknown. ``types`` are the data types of the outputs that the file gives no type.
    ``missing_kernel`` is which operator the runtime does not implement on the CPU, and
    ``doubtful_kernel`` which one it may not implement. ``unclear`` are the outputs that may have
    other shapes than the file declares; where some are unclear for their values, ``shapes`` has
    the others. ``batched`` is whether an unclear output begins with a variable size, if that is
    certain.
    """

    shapes: Mapping[str, Shape] | None = None
    types: Mapping[str, int] = field(default_factory=dict)
    fault: str | None = None
    missing_kernel: str | None = None
    doubtful_kernel: str = ""
    unclear: Collection[str] = ()
    batched: Mapping[str, bool] = field(default_factory=dict)
    not_checked: str = ""


@cache
def _process() -> BoundedProcess:
    """Return the process; what starts it is imported only where the package is installed."""
    from constructs_triton_core.processes.bounded_process import BoundedProcess

    return BoundedProcess(
        "triton_model_check.model_files.onnx_inference:infer_shapes",
        # `import onnx` takes four times as long as the modules that are used: it imports NumPy.
        bare_packages=("onnx", "triton_model_check", "triton_model_check.model_files"),
    )


def infer(message: MessageReader, cpu_release: str = "") -> Inference:
    """Check the operators of a model, and infer the shapes of its outputs.

    ``cpu_release`` is the release of ONNX Runtime if the model runs on the CPU; else it is empty.
    """
    if not _is_onnx_installed():
        return Inference(
            not_checked=f"{_NOT_CHECKED}: run `pip install 'triton-model-check[onnx]'`"
        )
    try:
        # The package reads a small file as it is faster than it can be copied.
        content = message.content() if message.end <= _SMALL_FILE_BYTES else _skeleton(message)
        seconds = _SECONDS + _SECONDS_PER_MIB * len(content) / (1 << 20)
        memory_bytes = _MEMORY_BYTES + _MEMORY_PER_BYTE * len(content)
        request = cpu_release.encode() + b"\n" + content
        ask = _answer if len(request) <= _LARGEST_REMEMBERED_BYTES else _answer.__wrapped__
        answer = json.loads(ask(request, seconds, memory_bytes))
    except (OverBudgetError, OSError) as error:
        note_limit()
        return Inference(not_checked=f"{_NOT_CHECKED}: {error}")
    reason = answer.get("not_checked")
    shapes = answer.get("shapes")
    if shapes is not None:
        shapes = {name: None if dims is None else tuple(dims) for name, dims in shapes.items()}
    return Inference(
        shapes,
        answer.get("types", {}),
        answer.get("fault"),
        answer.get("missing_kernel"),
        answer.get("doubtful_kernel", ""),
        answer.get("unclear", ()),
        answer.get("batched", {}),
        f"{_NOT_CHECKED}: {reason}" if reason else _depending(answer.get("depend_on_values", ())),
    )


def _depending(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"output shapes not checked: ONNX Runtime computes values that {quoted(names)} depend on"


@lru_cache(maxsize=16)  # many models of a repository often have the same graph, with other weights
def _answer(request: bytes, seconds: float, memory_bytes: int) -> bytes:
    return _process().call(request, seconds=seconds, memory_bytes=memory_bytes)


@cache  # find_spec looks into every folder of sys.path
def _is_onnx_installed() -> bool:
    return find_spec("onnx") is not None


# The model without its weights.


def _skeleton(message: MessageReader) -> bytes:
    """Copy a model without the elements of large tensors.

    Raises:
        OverBudgetError: the copy has more than 32 MiB, or messages are nested more than 100 deep.
    """
    return _copied_message(message, _MODEL, 0)


def _copied(message: MessageReader, each: Field, schema: Mapping[int, Any], depth: int) -> bytes:
    """Return a field without the elements of large tensors in it."""
    below = schema.get(each.number)
    # Only the elements of large tensors are left out.
    if below is None or each.end - each.start <= _LARGEST_KEPT_BYTES:
        return message.encoded(each)
    reader = message.message(each)
    content = (
        _copied_tensor(reader) if below is _TENSOR else _copied_message(reader, below, depth + 1)
    )
    return _field(each.number, content)


def _copied_message(message: MessageReader, schema: Mapping[int, Any], depth: int) -> bytes:
    """Return a message without the elements of large tensors in it."""
    if depth > _MOST_MESSAGES_DEEP:
        raise OverBudgetError(f"messages are nested more than {_MOST_MESSAGES_DEEP} deep")
    content = bytearray()
    for each in message:
        content += _copied(message, each, schema, depth)
        if len(content) > _LARGEST_SKELETON_BYTES:
            raise OverBudgetError(
                f"the graph has more than {_LARGEST_SKELETON_BYTES >> 20} MiB without its weights"
            )
    return bytes(content)


def _copied_tensor(message: MessageReader) -> bytes:
    """Copy a tensor; if it loses its elements, it is marked as one whose data is elsewhere, in no
    file.

    Then the package reads no elements. A list of integers keeps them, because it may be part of a
    shape.
    """
    content, mark = bytearray(), b""
    rank = data_type = 0
    for each in message:
        length = each.end - each.start
        rank += each.number == _DIMS
        data_type = each.value if each.number == _DATA_TYPE else data_type
        is_list = rank <= 1 and data_type in _INTEGERS and length <= _LARGEST_TABLE_BYTES
        if each.number not in _ELEMENTS or length <= _LARGEST_KEPT_BYTES or is_list:
            content += message.encoded(each)
        else:
            content += _field(each.number, _ONE_ELEMENT)
            mark = _IS_ELSEWHERE
    return bytes(content) + mark


def _field(number: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content
