"""For every check the smallest repository that trips it, and the same repository mended.

``generate_checks_doc.py`` prints them into the documentation, and the tests hold that the failing twin trips
exactly its check and that the mended one trips none.
"""

# Configurations read best unbroken.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from constructs_triton.model_config.target import Target

Files = Mapping[str, str | bytes | None]
"""Path to content; ``None`` is an empty folder, and a text that starts with ``->`` a link."""


@dataclass(frozen=True)
class Twin:
    """``target`` is ``None`` where SageMaker's front end has no part in it."""

    failing: Files
    mended: Files
    target: Target | None = None
    mended_target: Target | None = None


def write(files: Files, directory: Path) -> Path:
    """The files on disk."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif content.startswith("->"):
            path.symlink_to(content[2:])
        else:
            path.write_text(content, encoding="utf-8")
    return directory


CLASS = "class TritonPythonModel:\n    def execute(self, requests): ...\n"
X = '{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }'
Y = '{ name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }'
IO = f"input [ {X} ]\noutput [ {Y} ]\n"
HEAD = f'backend: "python"\nmax_batch_size: 8\n{IO}'


def one(config: str, **files: str | bytes | None) -> Files:
    """A Python model with this configuration."""
    return {"m/config.pbtxt": config, "m/1/model.py": CLASS, **files}


def added(failing: str, mended: str, target: Target | None = None) -> Twin:
    """A Python model with lines added to an ordinary configuration."""
    return Twin(one(HEAD + failing), one(HEAD + mended), target)


def foreign(failing: str, mended: str, file: str, target: Target | None = None) -> Twin:
    """A model of another backend, with its file."""
    return Twin(
        {"m/config.pbtxt": failing, f"m/1/{file}": "x"},
        {"m/config.pbtxt": mended, f"m/1/{file}": "x"},
        target,
    )


def step(model: str, reads: str, writes: str, version: str = "-1") -> str:
    """A step that reads and writes these tensors by the inputs and outputs X and Y."""
    return (
        f'{{ model_name: "{model}" model_version: {version} '
        f'input_map {{ key: "X" value: "{reads}" }} output_map {{ key: "Y" value: "{writes}" }} }}'
    )


def pipe(*steps: str, io: str = IO, more: str = "", batch: int = 8) -> str:
    """An ensemble's configuration."""
    lines = ",\n  ".join(steps)
    return f'platform: "ensemble"\nmax_batch_size: {batch}\n{io}{more}ensemble_scheduling {{ step [\n  {lines}\n] }}\n'


def ensemble(config: str, **models: str) -> Files:
    """An ensemble ``pipe`` with its models; ``a`` is there in any case."""
    files: dict[str, str | bytes | None] = {"pipe/config.pbtxt": config, "pipe/1": None}
    for name, text in {"a": HEAD, **models}.items():
        files[f"{name}/config.pbtxt"] = text
        files[f"{name}/1" if "ensemble" in text else f"{name}/1/model.py"] = (
            None if "ensemble" in text else CLASS
        )
    return files


def graph(failing: str, mended: str, **models: str) -> Twin:
    """Two ensembles over the same models."""
    return Twin(ensemble(failing, **models), ensemble(mended, **models))


ONE_STEP = pipe(step("a", "X", "Y"))
SINGLE = Target(default_model="m")
MULTI = Target(mode="multi-model")
MAPPED = 'input_map { key: "X" value: "X" }'
STATE = 'sequence_batching { state [ { input_name: "S" output_name: "T" data_type: TYPE_FP32 dims: [ 1 ] %s } ] }\n'
START = 'initial_state { name: "s" data_type: TYPE_FP32 dims: [ 1 ] %s }'
CONTROL = "sequence_batching { control_input [ %s ] }\n"
BEGIN = '{ name: "S" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] }'
WARM = 'model_warmup [ { name: "w" batch_size: 1 inputs { key: "X" value { %s } } } ]\n'
BIG = 'input [ { name: "X" data_type: TYPE_FP32 dims: [ %d ] } ]\noutput [ ' + Y + " ]\n"
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
ENVIRONMENT = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "%s" } }\n'
HERE = "$$TRITON_MODEL_DIRECTORY/env"
ENVIRONMENT_HERE = one(HEAD + ENVIRONMENT % HERE)
IMAGE_INPUT = (
    'input [ { name: "X" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ %s ] } ]\noutput [ ' + Y + " ]\n"
)
PLAN = f'platform: "tensorrt_plan"\nmax_batch_size: 8\n{IO}'
ONNX = f'backend: "onnxruntime"\nmax_batch_size: 8\n{IO}'
JOIN_IO = 'input [ { name: "U" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "V" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
JOIN = f'backend: "python"\nmax_batch_size: 8\n{JOIN_IO}output [ {Y} ]\n'


def joined(left: str, right: str) -> str:
    """A step of the model ``j``, which has two inputs."""
    return (
        '{ model_name: "j" model_version: -1 '
        f'input_map {{ key: "U" value: "{left}" }} input_map {{ key: "V" value: "{right}" }} '
        'output_map { key: "Y" value: "Y" } }'
    )


def reshaped(shape: str) -> str:
    """A configuration with a reshape of four elements."""
    tensor = f'{{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] reshape {{ shape: [ {shape} ] }} }}'
    return f'backend: "python"\nmax_batch_size: 8\ninput [ {tensor} ]\noutput [ {Y} ]\n'


def tensor_twin(failing: str, mended: str) -> Twin:
    """Two inputs of a Python model."""
    text = (
        'backend: "python"\nmax_batch_size: 8\ninput [ {} ]\noutput [ '
        + Y.replace("{", "{{").replace("}", "}}")
        + " ]\n"
    )
    return Twin(one(text.format(failing)), one(text.format(mended)))


TWINS: dict[str, Twin] = {
    # --- text -----------------------------------------------------------------------------------------------
    "text-syntax": Twin(one(HEAD.replace(":", "", 1)), one(HEAD)),
    "text-unknown-field": Twin(one(HEAD.replace("input", "inputs", 1)), one(HEAD)),
    "text-enum": Twin(one(HEAD.replace("TYPE_FP32", "FP32", 1)), one(HEAD)),
    "text-field-twice": added("max_batch_size: 8\n", ""),
    "text-one-of": added("dynamic_batching { }\nsequence_batching { }\n", "dynamic_batching { }\n"),
    "text-template": Twin(one(HEAD.replace("8", "${batch}", 1)), one(HEAD)),
    "text-placeholder": added(
        'parameters { key: "path" value { string_value: "${path}" } }\n',
        'parameters { key: "path" value { string_value: "/opt/ml/model/m/1" } }\n',
    ),
    # --- layout ---------------------------------------------------------------------------------------------
    "layout-no-model": Twin(
        {"models/m/config.pbtxt": HEAD, "models/m/1/model.py": CLASS, "src/app.py": "..."}, one(HEAD)
    ),
    "layout-no-version": Twin({"m/config.pbtxt": HEAD, "m/model.py": CLASS}, one(HEAD)),
    "layout-no-version-chosen": added(
        "version_policy { specific { versions: [ 2 ] } }\n",
        "version_policy { specific { versions: [ 1 ] } }\n",
    ),
    "layout-version-absent": added(
        "version_policy { specific { versions: [ 1, 7 ] } }\n",
        "version_policy { specific { versions: [ 1 ] } }\n",
    ),
    "layout-version-name": Twin(
        one(HEAD, **{"m/99999999999999999999/model.py": CLASS}), one(HEAD, **{"m/2/model.py": CLASS})
    ),
    "layout-version-skipped": Twin(
        one(HEAD, **{"m/02/model.py": CLASS}), one(HEAD, **{"m/2/model.py": CLASS})
    ),
    "layout-config-is-folder": Twin({"m/config.pbtxt": None, "m/1/model.onnx": "x"}, {"m/1/model.onnx": "x"}),
    "layout-config-unreadable": Twin(
        {"m/config.pbtxt": "->../lost", "m/1/model.onnx": "x"},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": "x"},
    ),
    "layout-name-differs": added('name: "other"\n', 'name: "m"\n'),
    # --- backend --------------------------------------------------------------------------------------------
    "backend-unknown": Twin({"m/1/weights.bin": "x"}, {"m/1/model.onnx": "x"}),
    "backend-platform": Twin(one(HEAD.replace("backend", "platform")), one(HEAD)),
    "backend-platform-pair": foreign(
        PLAN + 'backend: "pytorch"\n', PLAN + 'backend: "tensorrt"\n', "model.plan"
    ),
    "backend-of-ensemble": graph(ONE_STEP + 'backend: "python"\n', ONE_STEP),
    "backend-ensemble-platform": Twin(ensemble(f'platform: "ensemble"\n{IO}'), ensemble(ONE_STEP)),
    "backend-max-batch-size": Twin(one(HEAD.replace("8", "-1", 1)), one(HEAD)),
    "backend-misspelt": Twin(one(HEAD.replace("python", "pythonn")), one(HEAD)),
    "backend-repository-agent": added(
        'model_repository_agents { agents [ { name: "vault" } ] }\n',
        'model_repository_agents { agents [ { name: "checksum" } ] }\n',
    ),
    "backend-model-metrics": added(
        'model_metrics { metric_control [ { metric_identifier { family: "f" } } ] }\n',
        'model_metrics { metric_control [ { metric_identifier { family: "f" } histogram_options { buckets: [ 1 ] } } ] }\n',
    ),
    "backend-pytorch-names": foreign(
        'backend: "pytorch"\nmax_batch_size: 8\n' + IO.replace("X", "INPUT__0"),
        'backend: "pytorch"\nmax_batch_size: 8\n' + IO.replace("X", "INPUT__0").replace('"Y"', '"OUTPUT__0"'),
        "model.pt",
    ),
    # --- tensors --------------------------------------------------------------------------------------------
    "tensor-name": tensor_twin("{ data_type: TYPE_FP32 dims: [ 4 ] }", X),
    "tensor-data-type": tensor_twin('{ name: "X" dims: [ 4 ] }', X),
    "tensor-dims": tensor_twin('{ name: "X" data_type: TYPE_FP32 }', X),
    "tensor-dim-value": tensor_twin(X.replace("4", "0"), X.replace("4", "-1")),
    "tensor-reshape": Twin(one(reshaped("3")), one(reshaped("2, 2"))),
    "tensor-format": Twin(
        one('backend: "python"\n' + IMAGE_INPUT % "224, 224"),
        one('backend: "python"\n' + IMAGE_INPUT % "3, 224, 224"),
    ),
    "tensor-tensorrt-only": tensor_twin(X.replace("dims", "is_shape_tensor: true dims"), X),
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
    "tensor-batch-output": added(
        'batch_output [ { target_name: "Z" source_input: "X" } ]\n',
        'batch_output [ { target_name: "Y" source_input: "X" } ]\n',
    ),
    # --- schedulers -----------------------------------------------------------------------------------------
    "scheduler-dynamic-batching": Twin(
        one(f'backend: "python"\n{IO}dynamic_batching {{ }}\n'), one(HEAD + "dynamic_batching { }\n")
    ),
    "scheduler-preferred-batch-size": added(
        "dynamic_batching { preferred_batch_size: [ 16 ] }\n",
        "dynamic_batching { preferred_batch_size: [ 4 ] }\n",
    ),
    "scheduler-priority": added(
        "dynamic_batching { priority_levels: 2 }\n",
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 }\n",
    ),
    "scheduler-priority-default": added(
        "dynamic_batching { default_priority_level: 1 }\n", "dynamic_batching { }\n"
    ),
    "scheduler-preserve-ordering": added(
        "dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }\n",
        "dynamic_batching { preserve_ordering: true }\n",
    ),
    "scheduler-response-cache": added(
        "response_cache { enable: true }\nsequence_batching { }\n", "response_cache { enable: true }\n"
    ),
    "scheduler-control-name": added(CONTROL % BEGIN.replace('name: "S" ', ""), CONTROL % BEGIN),
    "scheduler-control-twice": added(
        CONTROL % f"{BEGIN}, {BEGIN.replace(chr(34) + 'S', chr(34) + 'T')}", CONTROL % BEGIN
    ),
    "scheduler-control-values": added(CONTROL % BEGIN.replace("0, 1", "1"), CONTROL % BEGIN),
    "scheduler-correlation-type": added(
        CONTROL % '{ name: "C" control [ { kind: CONTROL_SEQUENCE_CORRID } ] }',
        CONTROL % '{ name: "C" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }',
    ),
    "scheduler-slot-utilization": added(
        "sequence_batching { direct { minimum_slot_utilization: 50 } }\n",
        "sequence_batching { direct { minimum_slot_utilization: 0.5 } }\n",
    ),
    "state-initial-count": added(
        STATE % f"{START % 'zero_data: true'} {START % 'zero_data: true'}",
        STATE % (START % "zero_data: true"),
    ),
    "state-initial": added(STATE % (START % ""), STATE % (START % "zero_data: true")),
    "state-initial-file": Twin(
        one(HEAD + STATE % (START % 'data_file: "s.bin"')),
        one(HEAD + STATE % (START % 'data_file: "s.bin"'), **{"m/initial_state/s.bin": b"\0" * 4}),
    ),
    # --- instances ------------------------------------------------------------------------------------------
    "instance-gpus-without-gpu": added(
        "instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]\n", "instance_group [ { kind: KIND_CPU } ]\n"
    ),
    "instance-no-gpu": added(
        "instance_group [ { kind: KIND_GPU } ]\n",
        "instance_group [ { kind: KIND_CPU } ]\n",
        Target(default_model="m", gpu_count=0),
    ),
    "instance-kind": added("instance_group [ { kind: 7 } ]\n", "instance_group [ { kind: KIND_CPU } ]\n"),
    "instance-profile": added(
        'instance_group [ { profile: [ "0" ] } ]\n', "instance_group [ { count: 1 } ]\n"
    ),
    "instance-count": added("instance_group [ { count: -3 } ]\n", "instance_group [ { count: 3 } ]\n"),
    "instance-gpu-twice": added(
        "instance_group [ { kind: KIND_GPU gpus: [ 0, 0 ] } ]\n",
        "instance_group [ { kind: KIND_GPU gpus: [ 0 ] count: 2 } ]\n",
    ),
    # --- warm-up --------------------------------------------------------------------------------------------
    "warmup-data": added(
        WARM % "data_type: TYPE_FP32 dims: [ 4 ]", WARM % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true"
    ),
    "warmup-file": Twin(
        one(HEAD + WARM % 'data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "x"'),
        one(
            HEAD + WARM % 'data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "x"',
            **{"m/warmup/x": b"\0" * 16},
        ),
    ),
    "warmup-input": added(
        WARM % "data_type: TYPE_FP32 dims: [ 5 ] zero_data: true",
        WARM % "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true",
    ),
    # --- Python ---------------------------------------------------------------------------------------------
    "python-model-file": Twin({"m/config.pbtxt": HEAD, "m/1/models.py": CLASS}, one(HEAD)),
    "python-syntax": Twin(one(HEAD, **{"m/1/model.py": CLASS + "def\n"}), one(HEAD)),
    "python-syntax-other-version": Twin(
        one(HEAD, **{"m/1/model.py": CLASS + "def\n"}),
        one(HEAD),
        Target(default_model="m", image_version="24.09"),
    ),
    "python-class": Twin(one(HEAD, **{"m/1/model.py": CLASS.replace("Triton", "")}), one(HEAD)),
    "python-execute": Twin(one(HEAD, **{"m/1/model.py": CLASS.replace("execute", "exec")}), one(HEAD)),
    "python-environment": Twin(ENVIRONMENT_HERE, {**ENVIRONMENT_HERE, "m/env": None}),
    "python-environment-relative": added(ENVIRONMENT % "env.tar.gz", ENVIRONMENT % "/opt/env.tar.gz"),
    "python-environment-version": Twin(
        {**ENVIRONMENT_HERE, "m/env/lib/python3.8": None},
        {**ENVIRONMENT_HERE, "m/env/lib/python3.12": None},
        Target(default_model="m", image_version="26.05"),
    ),
    "python-cpu-only-inputs": added(
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "true" } }\n',
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "yes" } }\n',
    ),
    "python-no-tensors": Twin(one(""), one(HEAD)),
    # --- ensembles ------------------------------------------------------------------------------------------
    "ensemble-field": graph(pipe(step("a", "X", "Y"), more="instance_group [ { count: 1 } ]\n"), ONE_STEP),
    "ensemble-no-step": graph(
        f'platform: "ensemble"\nmax_batch_size: 8\n{IO}ensemble_scheduling {{ }}\n', ONE_STEP
    ),
    "ensemble-step-incomplete": graph(
        pipe(step("a", "X", "Y"), '{ model_name: "a" model_version: -1 ' + MAPPED + " }"), ONE_STEP
    ),
    "ensemble-written-twice": graph(pipe(step("a", "X", "Y"), step("a", "X", "Y")), ONE_STEP),
    "ensemble-unused-input": graph(
        pipe(step("a", "X", "Y"), io=IO + 'input [ { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'),
        ONE_STEP,
    ),
    "ensemble-unproduced": graph(pipe(joined("X", "image"), io=IO), pipe(joined("X", "X"), io=IO), j=JOIN),
    "ensemble-unread": graph(pipe(step("a", "X", "Y"), step("a", "Y", "t")), ONE_STEP),
    "ensemble-cycle": graph(
        pipe(joined("X", "t"), step("a", "Y", "t")), pipe(joined("X", "t"), step("a", "X", "t")), j=JOIN
    ),
    "ensemble-writes-input": graph(pipe(step("a", "X", "Y"), step("a", "Y", "X")), ONE_STEP),
    "ensemble-duplicate-tensor": graph(pipe(step("a", "X", "Y"), io=IO + f"input [ {X} ]\n"), ONE_STEP),
    "ensemble-unknown-model": graph(pipe(step("b", "X", "Y")), ONE_STEP),
    "ensemble-model-cycle": graph(pipe(step("pipe", "X", "Y")), ONE_STEP),
    "ensemble-step-version": graph(pipe(step("a", "X", "Y", "0")), ONE_STEP),
    "ensemble-batch-size": graph(pipe(step("a", "X", "Y"), batch=16), ONE_STEP),
    "ensemble-unknown-tensor": graph(
        pipe(step("a", "X", "Y").replace("} }", '} input_map { key: "Z" value: "X" } }')), ONE_STEP
    ),
    "ensemble-unmapped-input": graph(
        pipe(step("j", "X", "Y").replace('"X" value', '"U" value')), pipe(joined("X", "X")), j=JOIN
    ),
    "ensemble-data-type": graph(pipe(step("a", "X", "Y"), io=IO.replace("FP32", "FP16", 1)), ONE_STEP),
    "ensemble-shape": graph(pipe(step("a", "X", "Y"), io=IO.replace("4", "5", 1)), ONE_STEP),
    "ensemble-batch-axis": Twin(
        ensemble(ONE_STEP, a=f'backend: "python"\n{IO}'),
        ensemble(ONE_STEP, a='backend: "python"\n' + IO.replace("[ 4 ]", "[ -1, 4 ]")),
    ),
    "ensemble-decoupled-branches": Twin(
        ensemble(pipe(step("a", "X", "t"), joined("t", "X")), a=HEAD + DECOUPLED, j=JOIN),
        ensemble(pipe(step("a", "X", "t"), joined("t", "X")), j=JOIN),
    ),
    # --- SageMaker ------------------------------------------------------------------------------------------
    "sagemaker-config-at-root": Twin({**one(HEAD), "config.pbtxt": HEAD}, one(HEAD), SINGLE),
    "sagemaker-no-model": Twin({"notes.txt": "x"}, one(HEAD), Target()),
    "sagemaker-default-model": Twin({**one(HEAD), "assets": None}, one(HEAD), Target()),
    "sagemaker-default-model-absent": Twin(one(HEAD), one(HEAD), Target(default_model="n"), SINGLE),
    "sagemaker-name-blank": Twin(
        {name.replace("m/", "my model/", 1): text for name, text in one(HEAD).items()}, one(HEAD), Target()
    ),
    "sagemaker-archive-order": Twin(
        ensemble(ONE_STEP.replace("platform:", "platform :")), ensemble(ONE_STEP), MULTI
    ),
    "sagemaker-archive-link": Twin(
        {"n/config.pbtxt": HEAD, "n/1/model.py": CLASS, "m": "->n"}, one(HEAD), MULTI
    ),
    "sagemaker-name-out-of-memory": Twin(
        {name.replace("m/", "BLOOM/", 1): text for name, text in one(HEAD).items()}, one(HEAD), MULTI
    ),
    "sagemaker-decoupled": added(DECOUPLED, "", SINGLE),
    "sagemaker-decoupled-stream": added(DECOUPLED, "", Target(default_model="m", image_version="26.05")),
    # --- target ---------------------------------------------------------------------------------------------
    "target-field-too-new": added(
        'runtime: "libtriton_python.so"\n', "", Target(default_model="m", image_version="23.12")
    ),
    "target-backend-removed": foreign(
        f'platform: "tensorflow_graphdef"\nmax_batch_size: 8\n{IO}',
        ONNX,
        "model.onnx",
        Target(default_model="m", image_version="26.05"),
    ),
    "target-tensorrt-without-gpu": foreign(PLAN, ONNX, "model.onnx", Target(default_model="m", gpu_count=0)),
    "target-shared-memory": added(
        "instance_group [ { kind: KIND_CPU count: 200 } ]\n",
        "instance_group [ { kind: KIND_CPU count: 2 } ]\n",
        Target(default_model="m", memory_gib=4),
    ),
    "target-request-size": Twin(
        one('backend: "python"\nmax_batch_size: 64\n' + BIG % 150528),
        one('backend: "python"\nmax_batch_size: 8\n' + BIG % 150528),
        SINGLE,
    ),
    "target-storage": Twin(one(HEAD), one(HEAD), Target(default_model="m", storage_gb=0), SINGLE),
    "target-gpu-memory": Twin(
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": b"\0" * (2 << 20)},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": "x"},
        Target(default_model="m", gpu_count=1, gpu_memory_mib=1),
    ),
}
