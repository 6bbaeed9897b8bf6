"""Examples of the checks of inputs, outputs, batch inputs and batch outputs."""

from __future__ import annotations

from check_examples.repositories import (
    HEAD,
    IMAGE_INPUT,
    IO,
    ONE_STEP,
    PLAN,
    Example,
    X,
    Y,
    added,
    foreign,
    graph,
    one,
    pipe,
    reshaped,
    step,
    tensor_example,
)

COUNT = (
    "batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "
    '"N" data_type: TYPE_FP32 source_input: "X" } ]\n'
)
SCATTER = 'batch_output [ { %s source_input: "X" } ]\n'
NON_LINEAR = '{ name: "X" data_type: TYPE_FP32 dims: [ %s ] is_non_linear_format_io: true }'

EXAMPLES: dict[str, Example] = {
    "tensor-name": tensor_example("{ data_type: TYPE_FP32 dims: [ 4 ] }", X),
    "tensor-data-type": tensor_example('{ name: "X" dims: [ 4 ] }', X),
    "tensor-dims": tensor_example('{ name: "X" data_type: TYPE_FP32 }', X),
    "tensor-dim-value": tensor_example(X.replace("4", "0"), X.replace("4", "-1")),
    "tensor-dim-value: reshape": Example(one(reshaped("0")), one(reshaped("2, 2"))),
    "tensor-reshape": Example(one(reshaped("3")), one(reshaped("2, 2"))),
    "tensor-reshape: empty": Example(
        one(reshaped("").replace("max_batch_size: 8\n", "").replace("4", "1", 1)),
        one(reshaped("").replace("4", "1", 1)),
    ),
    "tensor-reshape: number of -1": Example(one(reshaped("-1")), one(reshaped("4"))),
    "tensor-format": Example(
        one('backend: "python"\n' + IMAGE_INPUT % "224, 224"),
        one('backend: "python"\n' + IMAGE_INPUT % "3, 224, 224"),
    ),
    "tensor-tensorrt-only": tensor_example(X.replace("dims", "is_shape_tensor: true dims"), X),
    "tensor-tensorrt-only: non-linear format": tensor_example(NON_LINEAR % "3, 4, 4", X),
    "tensor-tensorrt-only: dims": foreign(
        PLAN.replace(X, NON_LINEAR % "4"), PLAN.replace(X, NON_LINEAR % "3, 4, 4"), "model.plan"
    ),
    "tensor-duplicate-input": added(f"input [ {X} ]\n", ""),
    "tensor-duplicate-optional-input": added(
        f"input [ {X.replace('dims', 'optional: true dims')} ]\n", ""
    ),
    "tensor-duplicate-output": added(f"output [ {Y} ]\n", ""),
    "tensor-duplicate-output: ensemble": graph(
        pipe(step("a", "X", "Y"), io=f"{IO}output [ {Y} ]\n"), ONE_STEP
    ),
    "tensor-missing": Example(one(f'backend: "python"\ninput [ {X} ]\n'), one(HEAD)),
    "tensor-data-type-number": tensor_example(X.replace("TYPE_FP32", "99"), X),
    "tensor-data-type-number-output": Example(
        one(HEAD.replace(Y, Y.replace("TYPE_FP32", "99"))), one(HEAD)
    ),
    "tensor-batch-axis": Example(one(HEAD.replace("[ 4 ]", "[ 8, 4 ]")), one(HEAD)),
    "tensor-label-file": Example(
        one(
            HEAD
            + 'output [ { name: "L" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "l.txt" } ]\n'
        ),
        one(
            HEAD
            + 'output [ { name: "L" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "l.txt" } ]\n',
            **{"m/l.txt": "cat\ndog\n"},
        ),
    ),
    "tensor-label-outside": Example(
        one(
            HEAD
            + (
                'output [ { name: "L" data_type: TYPE_FP32 dims: '
                '[ 2 ] label_filename: "../l.txt" } ]\n'
            ),
            **{"l.txt": "cat\ndog\n"},
        ),
        one(
            HEAD
            + 'output [ { name: "L" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "l.txt" } ]\n',
            **{"m/l.txt": "cat\ndog\n"},
        ),
    ),
    "tensor-batch-input": added(
        'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 '
        'source_input: "x" } ]\n',
        'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 '
        'source_input: "X" } ]\n',
    ),
    "tensor-batch-input: kind": added(COUNT.replace("BATCH_ELEMENT_COUNT", "9"), COUNT),
    "tensor-batch-input: data type": added(COUNT.replace("FP32", "FP16"), COUNT),
    "tensor-batch-input: no source": added(COUNT.replace('source_input: "X"', ""), COUNT),
    "tensor-batch-output": added(
        'batch_output [ { target_name: "Z" source_input: "X" } ]\n',
        'batch_output [ { target_name: "Y" source_input: "X" } ]\n',
    ),
    "tensor-batch-output: kind": added(
        SCATTER % 'kind: 9 target_name: "Y"', SCATTER % 'target_name: "Y"'
    ),
    "tensor-batch-output: target twice": added(
        SCATTER % 'target_name: [ "Y", "Y" ]', SCATTER % 'target_name: "Y"'
    ),
}
