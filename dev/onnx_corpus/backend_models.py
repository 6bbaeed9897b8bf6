"""Writes a model for each operator, data type and operator set of the onnx package's backend tests.

    python dev/onnx_corpus/backend_models.py FOLDER [--old]

Each test model is also written with each other type that a type constraint of its operator allows,
and for older operator sets. With ``--old`` the models are such that ONNX Runtimes since 1.8 read
their versions. ``dev/onnx_kernels.py`` asks the runtimes about them.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, defs
from onnx.backend.test.case.node import collect_testcases

_LARGEST_BYTES = 200_000
_NEW_OPSETS, _OLD_OPSETS = (13, 17, 18, 19, 20, 21), (7, *range(9, 20))
_OLD_IR, _NEW_IR, _FIRST_IR_WITH_SMALL_TYPES = 7, 8, 10
_NEWEST_OLD_TYPE = TensorProto.BFLOAT16
_TYPES = {f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items()}


def write(folder: Path, *, is_old: bool) -> int:
    """Write the models, each in a folder of its own, and return how many there are."""
    seen: set[bytes] = set()
    for name, model in _models(is_old=is_old):
        content = model.SerializeToString()
        if content in seen:
            continue
        seen.add(content)
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "model.onnx").write_bytes(content)
    return len(seen)


def _models(*, is_old: bool) -> Iterator[tuple[str, Any]]:
    varied: set[object] = set()
    for case in collect_testcases(None):
        if case.model is None or case.model.ByteSize() > _LARGEST_BYTES:
            continue
        for suffix, model in _for_opsets(case.model, _OLD_OPSETS if is_old else _NEW_OPSETS):
            if is_old or not _has_small_types(model):
                model.ir_version = _OLD_IR if is_old else min(model.ir_version, _NEW_IR)
            if suffix or not is_old:
                yield f"{case.name}{suffix}", model
            if len(model.graph.node) == 1 and (suffix or not is_old):
                for kind, other in _with_other_types(model, varied, is_old=is_old):
                    yield f"{case.name}{suffix}@{kind}", other


def _for_opsets(given: Any, opsets: Collection[int]) -> Iterator[tuple[str, Any]]:
    yield "", _copy(given)
    current = [each for each in given.opset_import if not each.domain]
    if len(given.graph.node) != 1 or not current:
        return
    for opset in opsets:
        operator = given.graph.node[0].op_type
        if opset > current[0].version or not defs.has(operator, ""):
            continue
        if _schema(operator, opset, "") is None:
            continue
        model = _copy(given)
        next(each for each in model.opset_import if not each.domain).version = opset
        yield f"@{opset}", model


def _with_other_types(
    model: Any, varied: set[object], *, is_old: bool
) -> Iterator[tuple[str, Any]]:
    """Yield the model with each type of each type constraint, once for each set of attributes."""
    node = model.graph.node[0]
    opset = next((each.version for each in model.opset_import if each.domain == node.domain), 1)
    schema = _schema(node.op_type, opset, node.domain)
    for constraint in schema.type_constraints if schema is not None else ():
        name = constraint.type_param_str
        attributes = frozenset(each.name for each in node.attribute)
        key = (node.op_type, opset, name, attributes, len(node.input), len(node.output))
        if key in varied:
            continue
        varied.add(key)
        tensors = _bound(schema, node, name)
        for text in constraint.allowed_type_strs:
            number = _TYPES.get(text, 0)
            if number and not (is_old and number > _NEWEST_OLD_TYPE):
                yield f"{name}={text[7:-1]}", _with_type(model, tensors, number)


def _bound(schema: Any, node: Any, constraint: str) -> set[str]:
    """Return the names of the values whose type is that of the constraint."""
    found = set()
    for arguments, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for index, name in enumerate(names if arguments else ()):
            if arguments[min(index, len(arguments) - 1)].type_str == constraint:
                found.add(name)
    return found


def _with_type(given: Any, tensors: Collection[str], number: int) -> Any:
    model = _copy(given)
    for value in (*model.graph.input, *model.graph.output):
        if value.name in tensors and value.type.HasField("tensor_type"):
            value.type.tensor_type.elem_type = number
    if number > _NEWEST_OLD_TYPE:
        model.ir_version = max(model.ir_version, _FIRST_IR_WITH_SMALL_TYPES)
    return model


def _has_small_types(model: Any) -> bool:
    values = (*model.graph.input, *model.graph.output)
    return any(value.type.tensor_type.elem_type > _NEWEST_OLD_TYPE for value in values)


def _schema(operator: str, opset: int, domain: str) -> Any:
    try:
        return defs.get_schema(operator, opset, domain)
    except defs.SchemaError:
        return None


def _copy(model: Any) -> Any:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), is_old="--old" in sys.argv))
