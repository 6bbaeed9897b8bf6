"""An example: the smallest repository that trips a check, and the same repository fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from check_examples.onnx_models import relu
from check_examples.torch_and_plan import plan, torchscript
from triton_model_check.model_config.target import Target

Files = Mapping[str, str | bytes | None]
"""Path to content; ``None`` is an empty folder, and a string that starts with ``->`` is a link."""


@dataclass(frozen=True)
class Example:
    """``target`` is ``None`` if the check does not depend on the endpoint."""

    failing: Files
    fixed: Files
    target: Target | None = None
    fixed_target: Target | None = None


def write(files: Files, directory: Path) -> Path:
    """Write the files to disk and return the directory."""
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
TWO_OUTPUTS = f"input [ {X} ]\noutput [ {Y}, {Y.replace('Y', 'Z', 1)} ]\n"
HEAD = f'backend: "python"\nmax_batch_size: 8\n{IO}'


def one(config: str, **files: str | bytes | None) -> Files:
    """A Python model with this configuration."""
    return {"m/config.pbtxt": config, "m/1/model.py": CLASS, **files}


def added(failing: str, fixed: str, target: Target | None = None) -> Example:
    """A Python model with lines added to an ordinary configuration."""
    return Example(one(HEAD + failing), one(HEAD + fixed), target)


def foreign(failing: str, fixed: str, file: str, target: Target | None = None) -> Example:
    """A model of another backend, with its file."""
    contents: dict[str, str | bytes] = {
        ".onnx": relu(),
        ".plan": plan(),
        ".pt": torchscript("INPUT__0: Tensor"),
    }
    content = contents.get(Path(file).suffix, "x")
    return Example(
        {"m/config.pbtxt": failing, f"m/1/{file}": content},
        {"m/config.pbtxt": fixed, f"m/1/{file}": content},
        target,
    )


def step(model: str, reads: str, writes: str, version: str = "-1") -> str:
    """A step of a model with input X and output Y, which reads and writes these tensors."""
    return (
        f'{{ model_name: "{model}" model_version: {version} '
        f'input_map {{ key: "X" value: "{reads}" }} output_map {{ key: "Y" value: "{writes}" }} }}'
    )


def pipe(*steps: str, io: str = IO, more: str = "", batch: int = 8) -> str:
    """An ensemble's configuration."""
    lines = ",\n  ".join(steps)
    return (
        'platform: "ensemble"\nmax_batch_size: '
        f"{batch}\n{io}{more}ensemble_scheduling {{ step [\n  {lines}\n] }}\n"
    )


def ensemble(config: str, **models: str) -> Files:
    """An ensemble ``pipe`` with its models; ``a`` is always one of them."""
    files: dict[str, str | bytes | None] = {"pipe/config.pbtxt": config, "pipe/1": None}
    for name, text in {"a": HEAD, **models}.items():
        files[f"{name}/config.pbtxt"] = text
        files[f"{name}/1" if "ensemble" in text else f"{name}/1/model.py"] = (
            None if "ensemble" in text else CLASS
        )
    return files


def graph(failing: str, fixed: str, **models: str) -> Example:
    """Two ensembles of the same models."""
    return Example(ensemble(failing, **models), ensemble(fixed, **models))


ONE_STEP = pipe(step("a", "X", "Y"))
SINGLE = Target(default_model="m")
MULTI = Target("sagemaker-multi-model")
MAPPED = 'input_map { key: "X" value: "X" }'
STATE = (
    'sequence_batching { state [ { input_name: "S" output_name: '
    '"T" data_type: TYPE_FP32 dims: [ 1 ] %s } ] }\n'
)
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
    'input [ { name: "X" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ %s ] } ]\noutput [ '
    + Y
    + " ]\n"
)
PLAN = f'platform: "tensorrt_plan"\nmax_batch_size: 8\n{IO}'
ONNX = f'backend: "onnxruntime"\nmax_batch_size: 8\n{IO}'
JOIN_IO = (
    'input [ { name: "U" data_type: TYPE_FP32 dims: [ 4 ] }, '
    '{ name: "V" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
)
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


def tensor_example(failing: str, fixed: str) -> Example:
    """Two inputs of a Python model."""
    text = (
        'backend: "python"\nmax_batch_size: 8\ninput [ {} ]\noutput [ '
        + Y.replace("{", "{{").replace("}", "}}")
        + " ]\n"
    )
    return Example(one(text.format(failing)), one(text.format(fixed)))
