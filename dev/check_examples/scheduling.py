"""Examples of the checks of schedulers, instance groups and warmup."""

from __future__ import annotations

from check_examples.repositories import (
    BEGIN,
    CONTROL,
    DECOUPLED,
    HEAD,
    IO,
    PLAN,
    START,
    STATE,
    WARM,
    Example,
    added,
    foreign,
    one,
)
from triton_model_check.model_config.target import Target

FLOATS = "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true"
STRINGS = (HEAD + WARM % 'data_type: TYPE_STRING dims: [ 4 ] input_data_file: "x"').replace(
    "FP32", "STRING"
)

ZERO = "zero_data: true"
LEVELS = (
    "dynamic_batching { priority_levels: 2 default_priority_level: "
    "1 priority_queue_policy { key: %d value { } } }\n"
)
DELAYED = (
    "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: %s "
    "default_timeout_microseconds: 9 } }\n"
)
CORRELATION = '{ name: "C" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }'


def two_states(second: str) -> str:
    """Sequence batching with the state input S and a second one, both with an initial state."""
    states = [
        (
            f'{{ input_name: "{name}" output_name: "T" data_type: '
            f"TYPE_FP32 dims: [ 1 ] {START % ZERO} }}"
        )
        for name in ("S", second)
    ]
    return f"sequence_batching {{ state [ {', '.join(states)} ] }}\n"


def _crossed_states(first: str, second: str) -> str:
    """Sequence batching with two states, of the inputs S and T and these outputs."""
    names = (("S", second), ("T", first))
    states = [
        f'{{ input_name: "{name}" output_name: "{output}" data_type: TYPE_FP32 dims: [ 1 ] }}'
        for name, output in names
    ]
    return f"sequence_batching {{ state [ {', '.join(states)} ] }}\n"


EXAMPLES: dict[str, Example] = {
    "scheduler-dynamic-batching": Example(
        one(f'backend: "python"\n{IO}dynamic_batching {{ }}\n'),
        one(HEAD + "dynamic_batching { }\n"),
    ),
    "scheduler-preferred-batch-size": added(
        "dynamic_batching { preferred_batch_size: [ 16 ] }\n",
        "dynamic_batching { preferred_batch_size: [ 4 ] }\n",
    ),
    "scheduler-preferred-batch-size: not positive": added(
        "dynamic_batching { preferred_batch_size: [ 0 ] }\n", "dynamic_batching { }\n"
    ),
    "scheduler-preferred-batch-size: sequences": added(
        "sequence_batching { oldest { max_candidate_sequences: "
        "4 preferred_batch_size: [ 16 ] } }\n",
        "sequence_batching { oldest { max_candidate_sequences: 4 preferred_batch_size: [ 4 ] } }\n",
    ),
    "scheduler-preferred-batch-size: no batching": Example(
        one(
            HEAD.replace("8", "0", 1)
            + "sequence_batching { oldest { preferred_batch_size: [ 4 ] } }\n"
        ),
        one(
            HEAD.replace("8", "4", 1)
            + "sequence_batching { oldest { preferred_batch_size: [ 4 ] } }\n"
        ),
    ),
    "scheduler-priority": added(
        "dynamic_batching { priority_levels: 2 }\n",
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 }\n",
    ),
    "scheduler-priority: queue policy": added(LEVELS % 3, LEVELS % 2),
    "scheduler-priority-default": added(
        "dynamic_batching { default_priority_level: 1 }\n", "dynamic_batching { }\n"
    ),
    "scheduler-preserve-ordering": added(
        "dynamic_batching { preserve_ordering: true priority_levels: "
        "2 default_priority_level: 1 }\n",
        "dynamic_batching { preserve_ordering: true }\n",
    ),
    "scheduler-preserve-ordering: delay": added(DELAYED % "DELAY", DELAYED % "REJECT"),
    "scheduler-response-cache": added(
        "response_cache { enable: true }\nsequence_batching { }\n",
        "response_cache { enable: true }\n",
    ),
    "scheduler-response-cache: decoupled": added(
        DECOUPLED + "response_cache { enable: true }\n", "response_cache { enable: true }\n"
    ),
    "scheduler-no-response-cache": Example(
        one(HEAD + "response_cache { enable: true }\n"),
        one(HEAD + "response_cache { enable: true }\n"),
        Target(default_model="m", has_response_cache=False),
        Target(default_model="m", has_response_cache=True),
    ),
    "scheduler-no-response-cache: unknown arguments": Example(
        one(HEAD + "response_cache { enable: true }\n"), one(HEAD), Target(default_model="m")
    ),
    "scheduler-control-name": added(CONTROL % BEGIN.replace('name: "S" ', ""), CONTROL % BEGIN),
    "scheduler-control-name: twice": added(
        CONTROL % f"{BEGIN}, {BEGIN.replace('START', 'READY')}",
        CONTROL
        % f"{BEGIN}, {BEGIN.replace('START', 'READY').replace(chr(34) + 'S', chr(34) + 'R')}",
    ),
    "scheduler-control-twice": added(
        CONTROL % f"{BEGIN}, {BEGIN.replace(chr(34) + 'S', chr(34) + 'T')}", CONTROL % BEGIN
    ),
    "scheduler-control-values": added(CONTROL % BEGIN.replace("0, 1", "1"), CONTROL % BEGIN),
    "scheduler-control-values: none": added(
        CONTROL % BEGIN.replace("int32_false_true: [ 0, 1 ]", ""), CONTROL % BEGIN
    ),
    "scheduler-control-values: two": added(
        CONTROL % BEGIN.replace("[ 0, 1 ]", "[ 0, 1 ] fp32_false_true: [ 0, 1 ]"), CONTROL % BEGIN
    ),
    "scheduler-control-values: correlation id": added(
        CONTROL % CORRELATION.replace("data_type", "int32_false_true: [ 0, 1 ] data_type"),
        CONTROL % CORRELATION,
    ),
    "scheduler-correlation-type": added(
        CONTROL % '{ name: "C" control [ { kind: CONTROL_SEQUENCE_CORRID } ] }',
        CONTROL
        % '{ name: "C" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }',
    ),
    "scheduler-slot-utilization": added(
        "sequence_batching { direct { minimum_slot_utilization: 50 } }\n",
        "sequence_batching { direct { minimum_slot_utilization: 0.5 } }\n",
    ),
    "state-initial-count": added(
        STATE % f"{START % 'zero_data: true'} {START % 'zero_data: true'}",
        STATE % (START % "zero_data: true"),
    ),
    "state-initial-count: same input": added(two_states("S"), two_states("U")),
    "state-initial": added(STATE % (START % ""), STATE % (START % "zero_data: true")),
    "state-initial: no name": added(
        STATE % (START % ZERO).replace('name: "s" ', ""), STATE % (START % ZERO)
    ),
    "state-initial: data type": added(
        STATE % (START % ZERO).replace("FP32", "FP16"), STATE % (START % ZERO)
    ),
    "state-initial: dims": added(
        STATE % (START % ZERO).replace("[ 1 ]", "[ 2 ]"), STATE % (START % ZERO)
    ),
    "state-initial: variable dim": added(
        (STATE % (START % ZERO)).replace("[ 1 ]", "[ -1 ]"),
        (STATE % (START % ZERO)).replace("[ 1 ]", "[ -1 ]", 1),
    ),
    "state-pairing": added(_crossed_states("X1", "Y2"), _crossed_states("Y2", "X1")),
    "state-initial-file: too small": Example(
        one(HEAD + STATE % (START % 'data_file: "s.bin"'), **{"m/initial_state/s.bin": b"\0" * 2}),
        one(HEAD + STATE % (START % 'data_file: "s.bin"'), **{"m/initial_state/s.bin": b"\0" * 4}),
    ),
    "state-initial-file": Example(
        one(HEAD + STATE % (START % 'data_file: "s.bin"')),
        one(HEAD + STATE % (START % 'data_file: "s.bin"'), **{"m/initial_state/s.bin": b"\0" * 4}),
    ),
    "instance-gpus-without-gpu": added(
        "instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]\n",
        "instance_group [ { kind: KIND_CPU } ]\n",
    ),
    "instance-gpus-without-gpu: KIND_MODEL": added(
        "instance_group [ { kind: KIND_MODEL gpus: [ 0 ] } ]\n",
        "instance_group [ { kind: KIND_MODEL } ]\n",
    ),
    "instance-gpus-without-gpu: no kind": added(
        "instance_group [ { gpus: [ 3 ] } ]\n",
        "instance_group [ { count: 1 } ]\n",
        Target(default_model="m", gpu_count=1),
    ),
    "instance-no-gpu": added(
        "instance_group [ { kind: KIND_GPU } ]\n",
        "instance_group [ { kind: KIND_CPU } ]\n",
        Target(default_model="m", gpu_count=0),
    ),
    "instance-no-gpu: absent GPU": added(
        "instance_group [ { kind: KIND_GPU gpus: [ 2 ] } ]\n",
        "instance_group [ { kind: KIND_GPU gpus: [ 1 ] } ]\n",
        Target(default_model="m", gpu_count=2),
    ),
    "instance-kind": added(
        "instance_group [ { kind: 7 } ]\n", "instance_group [ { kind: KIND_CPU } ]\n"
    ),
    "instance-profile": added(
        'instance_group [ { profile: [ "0" ] } ]\n', "instance_group [ { count: 1 } ]\n"
    ),
    "instance-profile: not a number": foreign(
        PLAN + 'instance_group [ { profile: [ "large" ] } ]\n',
        PLAN + 'instance_group [ { profile: [ "0" ] } ]\n',
        "model.plan",
    ),
    "instance-count": added(
        "instance_group [ { count: -3 } ]\n", "instance_group [ { count: 3 } ]\n"
    ),
    "instance-gpu-twice": added(
        "instance_group [ { kind: KIND_GPU gpus: [ 0, 0 ] } ]\n",
        "instance_group [ { kind: KIND_GPU gpus: [ 0 ] count: 2 } ]\n",
    ),
    "warmup-data": added(
        WARM % "data_type: TYPE_FP32 dims: [ 4 ]",
        WARM % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true",
    ),
    "warmup-data: variable dim": added(
        WARM % "data_type: TYPE_FP32 dims: [ -1 ] zero_data: true",
        WARM % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true",
    ),
    "warmup-file": Example(
        one(HEAD + WARM % 'data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "x"'),
        one(
            HEAD + WARM % 'data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "x"',
            **{"m/warmup/x": b"\0" * 16},
        ),
    ),
    "warmup-file: too small": Example(
        one(
            HEAD + WARM % 'data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "x"',
            **{"m/warmup/x": b"\0" * 15},
        ),
        one(
            HEAD + WARM % 'data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "x"',
            **{"m/warmup/x": b"\0" * 16},
        ),
    ),
    "warmup-file: string without its length": Example(
        one(STRINGS, **{"m/warmup/x": b"yes"}), one(STRINGS, **{"m/warmup/x": b"\3\0\0\0yes" * 4})
    ),
    "warmup-file: too many strings": Example(
        one(STRINGS, **{"m/warmup/x": b"\1\0\0\0a" * 5}),
        one(STRINGS, **{"m/warmup/x": b"\1\0\0\0a" * 4}),
    ),
    "warmup-batch-size": added(
        (WARM % FLOATS).replace("batch_size: 1", "batch_size: 9"), WARM % FLOATS
    ),
    "warmup-control": added(
        CONTROL % BEGIN + WARM % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true",
        CONTROL % BEGIN
        + WARM.replace(
            "inputs",
            'inputs { key: "S" value { data_type: TYPE_INT32 dims: [ 1 ] '
            "zero_data: true } } inputs",
            1,
        )
        % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true",
    ),
    "warmup-input": added(
        WARM % "data_type: TYPE_FP32 dims: [ 5 ] zero_data: true",
        WARM % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true",
    ),
    "warmup-input: data type": added(
        WARM % "data_type: TYPE_FP16 dims: [ 4 ] zero_data: true",
        WARM % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true",
    ),
    "warmup-input: missing": added(
        'model_warmup [ { name: "w" batch_size: 1 } ]\n',
        WARM % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true",
    ),
}
