"""``constructs-triton model new``: create a model's folder from a file,
from code or from models.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.exit_codes import FoundWrongError
from constructs_triton_core.untrusted.regular_files import explained
from constructs_triton_core.untrusted.terminal import print_json, print_lines
from triton_model_check.builder.derived_config import (
    DerivedConfig,
    checked_name,
    derive,
)
from triton_model_check.builder.derived_warmup import warmup_requests
from triton_model_check.cli.config import described_folder, print_tensors
from triton_model_check.cli.model.arguments import SYNTAX, add_arguments, config_fields
from triton_model_check.cli.model.first_code import first_code
from triton_model_check.cli.model.pipeline import pipeline_of
from triton_model_check.cli.model.task import run_task
from triton_model_check.cli.tensor_options import read_shapes
from triton_model_check.model_config import ModelConfig
from triton_model_check.model_repository.new_model import NewModel

__all__ = ["add_arguments"]

_TENSORS = "--input text:BYTES:1 --output score:FP32:1"
# Formats that `local up` runs with the framework's own package.
_RUN_LOCALLY = ("onnx", "torchscript", "openvino", "tree")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The folder to create, and what the output says about it."""

    model: NewModel
    notes: tuple[str, ...] = ()
    runs_locally: bool = True
    streams: bool = False


def run(arguments: argparse.Namespace) -> int:
    """Create the folder, and print the tensors and what to do next."""
    if arguments.task:
        return run_task(arguments)
    plan = _plan(arguments)
    # The steps of an ensemble are in other folders; the class Ensemble has compared it with them.
    folder = plan.model.write_to(arguments.repository, check=arguments.backend != "ensemble")
    if arguments.json:
        _print_json(plan, folder)
    else:
        _print_text(plan, folder, arguments.program)
    return 0


# --- what to create -------------------------------------------------------------------------------


def _plan(arguments: argparse.Namespace) -> _Plan:
    _refuse_options(arguments)
    if arguments.backend == "ensemble":
        return _ensemble(arguments)
    if arguments.backend == "python" or _has_code(arguments):
        return _python_model(arguments)
    return _model_of_file(arguments)


def _has_code(arguments: argparse.Namespace) -> bool:
    """Whether the first argument is the user's code, and not the name of a model."""
    return arguments.backend != "ensemble" and str(arguments.file).endswith(".py")


def _refuse_options(arguments: argparse.Namespace) -> None:
    """Raise ``InvalidValueError`` for options that do not apply together."""
    for option in ("form", "labels"):
        if getattr(arguments, option):
            raise InvalidValueError(
                f"--{option}: only an ensemble for pictures has it; add --task detect"
            )
    if arguments.shapes and not arguments.with_warmup:
        raise InvalidValueError("--shape: sets the dims of the warmup request; add --with-warmup")
    if arguments.backend and arguments.name and not _has_code(arguments):
        raise InvalidValueError(
            f"--name: with --backend, the first argument is the name, got {str(arguments.file)!r} "
            f"and {arguments.name!r}; leave one of them out"
        )
    if arguments.steps and arguments.backend != "ensemble":
        raise InvalidValueError("--step: only an ensemble has steps; add --backend ensemble")
    if arguments.decoupled and arguments.backend != "python" and not _has_code(arguments):
        raise InvalidValueError(
            "--decoupled: only a Python model can be written as a stream; add --backend python "
            "with the name of the model in place of a file, or leave --decoupled out"
        )
    if arguments.backend == "ensemble" and (arguments.with_warmup or any(config_fields(arguments))):
        raise InvalidValueError(
            "--backend ensemble: takes --step and --max-batch-size only, because tensors and "
            "instances are those of its models; leave the other options out"
        )


def _refuse_faults(derived: DerivedConfig) -> None:
    try:
        derived.raise_faults()
    except InvalidValueError as error:
        raise FoundWrongError(str(error)) from None


def _model_of_file(arguments: argparse.Namespace) -> _Plan:
    """Plan a model whose configuration is derived from its file."""
    derived = derive(
        ModelConfig.draft,
        arguments.file,
        name=arguments.name,
        max_batch_size=arguments.max_batch_size,
        with_warmup=arguments.with_warmup,
        warmup_dims=read_shapes(arguments.shapes),
        fields=dict(config_fields(arguments)),
        syntax=SYNTAX,
        onnx_runtime=arguments.onnx_runtime,
    )
    _refuse_faults(derived)
    return _Plan(
        NewModel(derived.message.name, derived.to_text(), derived.files),
        tuple(f"{derived.file.path.name}: {note}" for note in derived.file.not_checked),
        derived.file.format in _RUN_LOCALLY,
    )


def _python_model(arguments: argparse.Namespace) -> _Plan:
    """Plan the folder of the user's code, or of a first ``model.py`` if only a name is given."""
    path: Path = arguments.file
    has_code = _has_code(arguments)
    code = _code(path) if has_code else b""
    if not (arguments.inputs and arguments.outputs) and b"auto_complete_config" not in code:
        raise InvalidValueError(
            f"{path}: the tensors of a Python model are not known; "
            f"set --input and --output, for example {_TENSORS}"
        )
    if arguments.dynamic_batching is not None and not arguments.max_batch_size:
        raise InvalidValueError(
            f"{path}: --dynamic-batching has no effect, because max_batch_size is 0; set "
            "--max-batch-size if the tensors have a batch dimension, or leave the option out"
        )
    config = ModelConfig(
        name=checked_name(arguments.name or (path.stem if has_code else str(path))),
        backend="python",
        max_batch_size=arguments.max_batch_size or 0,
        **dict(config_fields(arguments)),
    )
    message = config.to_message()
    if arguments.with_warmup:
        shapes = read_shapes(arguments.shapes)
        message.model_warmup.extend(warmup_requests(message, path, SYNTAX, shapes))
    text = ModelConfig.from_message(message).to_text()
    source = path if has_code else first_code(config).encode()
    return _Plan(NewModel(config.name, text, {"model.py": source}), streams=arguments.decoupled)


def _code(path: Path) -> bytes:
    fix = f"pass the path of your model.py, or write --backend python {path.stem} for a first one"
    with explained(path, "cannot be read", fix):
        return path.read_bytes()


def _ensemble(arguments: argparse.Namespace) -> _Plan:
    name = checked_name(str(arguments.file))
    config = pipeline_of(name, arguments.steps, arguments.repository, arguments.max_batch_size)
    # Triton wants the folder of a version, which Git keeps only with a file.
    return _Plan(NewModel(name, config.to_text(), {".keep": b""}))


# --- output ---------------------------------------------------------------------------------------


def _print_json(plan: _Plan, folder: Path) -> None:
    document = {"folder": str(folder), "files": _written(plan, folder)}
    print_json({**document, **described_folder(folder).to_dict()})


def _written(plan: _Plan, folder: Path) -> list[str]:
    return [str(folder / "config.pbtxt"), *(str(folder / "1" / path) for path in plan.model.files)]


def _next_commands(folder: Path, plan: _Plan, has_tensors: bool, program: str) -> Iterator[str]:
    """Yield commands to copy. Models of other formats cannot run on a machine without a GPU."""
    repository = shlex.quote(str(folder.parent))
    name = shlex.quote(folder.name)
    yield f"Check it:  {program} check {repository}"
    if program == "triton-model-check":  # the commands below are those of constructs-triton
        yield f"Run it:    tritonserver --model-repository={repository}"
        return
    where = "" if folder.parent == Path("models") else f" --repository {repository}"
    if plan.runs_locally:
        yield f"Run it:    constructs-triton local up {repository} --model {name} --endpoint {name}"
        where += " --endpoint-url http://127.0.0.1:8080"
    if has_tensors:
        stream = "--stream " if plan.streams else ""
        yield f"Call it:   constructs-triton invoke {name} {stream}--random{where}"


def _print_text(plan: _Plan, folder: Path, program: str) -> None:
    described = described_folder(folder)
    print_tensors(described)
    for path in _written(plan, folder):
        print_lines(f"wrote {path}")
    for note in plan.notes:
        print_lines(f"note: {note}")
    print_lines("", *_next_commands(folder, plan, bool(described.tensors), program))
