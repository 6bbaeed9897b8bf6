"""Fills in what a public repository leaves to a script: values of templates, and weights.

Weights are sparse files of the size that the system's description gives; they take no disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnx import TensorProto, helper

_MIB = 2**20
_TEMPLATES = ("config.pbtxt.template", "config_template.pbtxt")


def fill_templates(repository: Path, values: Mapping[str, str]) -> None:
    """Write the configurations that templates become, with values for their placeholders.

    The longest placeholder is replaced first, because one may be a part of another.
    """
    for name in _TEMPLATES:
        for template in repository.rglob(name):
            template.rename(template.with_name("config.pbtxt"))
    for config in repository.rglob("config.pbtxt"):
        text = config.read_text("utf-8")
        for placeholder in sorted(values, key=len, reverse=True):
            text = text.replace(placeholder, values[placeholder])
        config.write_text(text, "utf-8")


def write_weights(path: Path, mebibytes: int) -> None:
    """Write a file of a size that has the format of its suffix as far as the checker reads it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".onnx" or path.name == "model.bin":
        _write_onnx(path, mebibytes)
        return
    with path.open("wb") as file:
        if path.suffix == ".plan":
            file.write(b"ftrt")  # the tag of a TensorRT plan
        file.truncate(mebibytes * _MIB)


def _write_onnx(path: Path, mebibytes: int) -> None:
    """Write a model with one initializer, whose zeros are a hole at the end of the file.

    Fields of a message may have any order, so the graph comes last, the initializer comes last in
    it, and the raw data come last in the initializer.
    """
    size = mebibytes * _MIB
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[size // 4])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [size // 4])
    node = helper.make_node("Identity", ["w"], ["y"])
    graph = helper.make_graph([node], "g", [], [output])
    opset = helper.make_opsetid("", 13)
    proto = helper.make_model(helper.make_graph([], "", [], []), opset_imports=[opset])
    proto.ir_version = 7
    proto.ClearField("graph")

    raw_data = weights.SerializeToString() + _tag(9, size)
    initializer = _tag(5, len(raw_data) + size) + raw_data
    named = graph.SerializeToString() + initializer
    head = proto.SerializeToString() + _tag(7, len(named) + size) + named
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)


def _tag(field: int, length: int) -> bytes:
    """Return the beginning of a field of protobuf's wire type 2: its number and its length."""
    return _varint(field << 3 | 2) + _varint(length)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
