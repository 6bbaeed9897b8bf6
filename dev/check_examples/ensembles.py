"""Examples of the checks of ensembles."""

# Configurations read best unbroken.

from __future__ import annotations

from check_examples.repositories import (
    DECOUPLED,
    HEAD,
    IO,
    JOIN,
    MAPPED,
    ONE_STEP,
    TWO_OUTPUTS,
    Example,
    X,
    ensemble,
    graph,
    joined,
    pipe,
    step,
)

ROWS = IO.replace("[ 4 ]", "[ -1, 4 ]")
WRITES_ROWS = f'backend: "python"\n{IO.partition("output")[0]}output{ROWS.partition("output")[2]}'
ANY_ROWS = pipe(
    step("a", "X", "t"),
    step("b", "t", "Y"),
    io=WRITES_ROWS.partition("\n")[2],
    batch=0,
)
TWO_OUT = 'output [ { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'

EXAMPLES: dict[str, Example] = {
    "ensemble-field": graph(
        pipe(step("a", "X", "Y"), more="instance_group [ { count: 1 } ]\n"), ONE_STEP
    ),
    "ensemble-field: optimization": graph(
        pipe(step("a", "X", "Y"), more="optimization { priority: PRIORITY_MAX }\n"), ONE_STEP
    ),
    "ensemble-field: warmup": graph(
        pipe(step("a", "X", "Y"), more='model_warmup [ { name: "w" } ]\n'), ONE_STEP
    ),
    "ensemble-ragged": graph(
        pipe(step("a", "X", "Y"), io=IO.replace("dims", "allow_ragged_batch: true dims", 1)),
        ONE_STEP,
    ),
    "ensemble-no-step": graph(
        f'platform: "ensemble"\nmax_batch_size: 8\n{IO}ensemble_scheduling {{ }}\n', ONE_STEP
    ),
    "ensemble-step-incomplete": graph(
        pipe(step("a", "X", "Y"), '{ model_name: "a" model_version: -1 ' + MAPPED + " }"), ONE_STEP
    ),
    "ensemble-step-incomplete: no model": graph(pipe(step("", "X", "Y")), ONE_STEP),
    "ensemble-step-incomplete: no input": graph(
        pipe(
            step("a", "X", "Y"),
            '{ model_name: "a" model_version: -1 output_map { key: "Y" value: "Z" } }',
            io=IO + TWO_OUT,
        ),
        pipe(step("a", "X", "Y"), step("a", "X", "Z"), io=IO + TWO_OUT),
    ),
    "ensemble-written-twice": graph(pipe(step("a", "X", "Y"), step("a", "X", "Y")), ONE_STEP),
    "ensemble-unused-input": graph(
        pipe(
            step("a", "X", "Y"),
            io=IO + 'input [ { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] } ]\n',
        ),
        ONE_STEP,
    ),
    "ensemble-unproduced": graph(
        pipe(joined("X", "image"), io=IO), pipe(joined("X", "X"), io=IO), j=JOIN
    ),
    "ensemble-unproduced: output": graph(pipe(step("a", "X", "Y"), io=IO + TWO_OUT), ONE_STEP),
    "ensemble-unread": graph(pipe(step("a", "X", "Y"), step("a", "Y", "t")), ONE_STEP),
    "ensemble-cycle": graph(
        pipe(joined("X", "t"), step("a", "Y", "t")),
        pipe(joined("X", "t"), step("a", "X", "t")),
        j=JOIN,
    ),
    "ensemble-writes-input": graph(pipe(step("a", "X", "Y"), step("a", "Y", "X")), ONE_STEP),
    "ensemble-duplicate-tensor": graph(
        pipe(step("a", "X", "Y"), io=IO + f"input [ {X} ]\n"), ONE_STEP
    ),
    "ensemble-unknown-model": graph(pipe(step("b", "X", "Y")), ONE_STEP),
    "ensemble-model-cycle": graph(pipe(step("pipe", "X", "Y")), ONE_STEP),
    "ensemble-model-cycle: two ensembles": graph(
        pipe(step("j", "X", "Y")), ONE_STEP, j=pipe(step("pipe", "X", "Y"))
    ),
    "ensemble-step-version": graph(pipe(step("a", "X", "Y", "0")), ONE_STEP),
    "ensemble-batch-size": graph(pipe(step("a", "X", "Y"), batch=16), ONE_STEP),
    "ensemble-unknown-tensor": graph(
        pipe(step("a", "X", "Y").replace("} }", '} input_map { key: "Z" value: "X" } }')), ONE_STEP
    ),
    "ensemble-unknown-tensor: output": graph(
        pipe(
            step("a", "X", "Y").replace("} }", '} output_map { key: "Z" value: "Z" } }'),
            io=IO + TWO_OUT,
        ),
        pipe(step("a", "X", "Y"), step("a", "X", "Z"), io=IO + TWO_OUT),
    ),
    "ensemble-unmapped-input": graph(
        pipe(step("j", "X", "Y").replace('"X" value', '"U" value')), pipe(joined("X", "X")), j=JOIN
    ),
    "ensemble-data-type": graph(
        pipe(step("a", "X", "Y"), io=IO.replace("FP32", "FP16", 1)), ONE_STEP
    ),
    "ensemble-shape": graph(pipe(step("a", "X", "Y"), io=IO.replace("4", "5", 1)), ONE_STEP),
    "ensemble-batch-axis": Example(
        ensemble(ONE_STEP, a=f'backend: "python"\n{IO}'),
        ensemble(ONE_STEP, a='backend: "python"\n' + IO.replace("[ 4 ]", "[ -1, 4 ]")),
    ),
    "ensemble-batch-exceeded": Example(
        ensemble(ANY_ROWS, a=WRITES_ROWS, b=HEAD),
        ensemble(ANY_ROWS, a=WRITES_ROWS, b=f'backend: "python"\n{ROWS}'),
    ),
    "ensemble-decoupled-branches: outputs": Example(
        ensemble(
            pipe(step("a", "X", "Y"), step("b", "X", "Z"), io=TWO_OUTPUTS),
            a=HEAD + DECOUPLED,
            b=HEAD,
        ),
        ensemble(pipe(step("a", "X", "Y"), step("b", "X", "Z"), io=TWO_OUTPUTS), b=HEAD),
    ),
    "ensemble-decoupled-branches": Example(
        ensemble(pipe(step("a", "X", "t"), joined("t", "X")), a=HEAD + DECOUPLED, j=JOIN),
        ensemble(pipe(step("a", "X", "t"), joined("t", "X")), j=JOIN),
    ),
}
