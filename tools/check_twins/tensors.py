"""Twins of the checks of inputs, outputs, batch inputs and batch outputs."""

# Configurations read best unbroken.
# ruff: noqa: E501

from __future__ import annotations

from check_twins.repositories import (
    HEAD,
    IMAGE_INPUT,
    PLAN,
    Twin,
    X,
    Y,
    added,
    foreign,
    one,
    reshaped,
    tensor_twin,
)

COUNT = (
    'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 source_input: "X" } ]\n'
)
SCATTER = 'batch_output [ { %s source_input: "X" } ]\n'
NON_LINEAR = '{ name: "X" data_type: TYPE_FP32 dims: [ %s ] is_non_linear_format_io: true }'

TWINS: dict[str, Twin] = {
    "tensor-name": tensor_twin("{ data_type: TYPE_FP32 dims: [ 4 ] }", X),
    "tensor-data-type": tensor_twin('{ name: "X" dims: [ 4 ] }', X),
    "tensor-dims": tensor_twin('{ name: "X" data_type: TYPE_FP32 }', X),
    "tensor-dim-value": tensor_twin(X.replace("4", "0"), X.replace("4", "-1")),
    "tensor-dim-value: reshape": Twin(one(reshaped("0")), one(reshaped("2, 2"))),
    "tensor-reshape": Twin(one(reshaped("3")), one(reshaped("2, 2"))),
    "tensor-reshape: empty": Twin(
        one(reshaped("").replace("max_batch_size: 8\n", "").replace("4", "1", 1)),
        one(reshaped("").replace("4", "1", 1)),
    ),
    "tensor-reshape: number of -1": Twin(one(reshaped("-1")), one(reshaped("4"))),
    "tensor-format": Twin(
        one('backend: "python"\n' + IMAGE_INPUT % "224, 224"),
        one('backend: "python"\n' + IMAGE_INPUT % "3, 224, 224"),
    ),
    "tensor-tensorrt-only": tensor_twin(X.replace("dims", "is_shape_tensor: true dims"), X),
    "tensor-tensorrt-only: non-linear format": tensor_twin(NON_LINEAR % "3, 4, 4", X),
    "tensor-tensorrt-only: dims": foreign(
        PLAN.replace(X, NON_LINEAR % "4"), PLAN.replace(X, NON_LINEAR % "3, 4, 4"), "model.plan"
    ),
    "tensor-duplicate-input": added(f"input [ {X} ]\n", ""),
    "tensor-duplicate-output": added(f"output [ {Y} ]\n", ""),
    "tensor-missing": Twin(one(f'backend: "python"\ninput [ {X} ]\n'), one(HEAD)),
    "tensor-data-type-number": tensor_twin(X.replace("TYPE_FP32", "99"), X),
    "tensor-batch-axis": Twin(one(HEAD.replace("[ 4 ]", "[ 8, 4 ]")), one(HEAD)),
    "tensor-label-file": Twin(
        one(HEAD + 'output [ { name: "L" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "l.txt" } ]\n'),
        one(
            HEAD + 'output [ { name: "L" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "l.txt" } ]\n',
            **{"m/l.txt": "cat\ndog\n"},
        ),
    ),
    "tensor-label-outside": Twin(
        one(
            HEAD + 'output [ { name: "L" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "../l.txt" } ]\n',
            **{"l.txt": "cat\ndog\n"},
        ),
        one(
            HEAD + 'output [ { name: "L" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "l.txt" } ]\n',
            **{"m/l.txt": "cat\ndog\n"},
        ),
    ),
    "tensor-batch-input": added(
        'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 source_input: "x" } ]\n',
        'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 source_input: "X" } ]\n',
    ),
    "tensor-batch-input: kind": added(COUNT.replace("BATCH_ELEMENT_COUNT", "9"), COUNT),
    "tensor-batch-input: data type": added(COUNT.replace("FP32", "FP16"), COUNT),
    "tensor-batch-input: no source": added(COUNT.replace('source_input: "X"', ""), COUNT),
    "tensor-batch-output": added(
        'batch_output [ { target_name: "Z" source_input: "X" } ]\n',
        'batch_output [ { target_name: "Y" source_input: "X" } ]\n',
    ),
    "tensor-batch-output: kind": added(SCATTER % 'kind: 9 target_name: "Y"', SCATTER % 'target_name: "Y"'),
    "tensor-batch-output: target twice": added(
        SCATTER % 'target_name: [ "Y", "Y" ]', SCATTER % 'target_name: "Y"'
    ),
}
