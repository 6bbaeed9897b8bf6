"""``constructs-triton model new FILE --task``: an ensemble that takes a picture."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.terminal import print_json, print_lines
from triton_model_check.builder.derived_config import checked_name
from triton_model_check.cli.config import described_folder, print_tensors
from triton_model_check.cli.model.arguments import SYNTAX, config_fields
from triton_model_check.facts.images import DEFAULT_VERSION
from triton_model_check.model_repository.new_model import write_together
from triton_model_check.vision.picture_models import TaskModels
from triton_model_check.vision.task_models import task_models

__all__ = ["run_task"]

_REQUIREMENTS = "requirements.txt"
_DESCRIPTION = "triton-models.toml"
_CHECKER = "triton-model-check"


def run_task(arguments: argparse.Namespace) -> int:
    """Create the folders, and print what was recognized, what was assumed and what to do next."""
    _refuse_options(arguments)
    planned = _planned(arguments)
    files = _environment_files(planned, arguments)
    folders = write_together(planned.models, arguments.repository, files=files)
    written = list(_written(planned, folders))
    written.extend(str(arguments.repository / name) for name in files)
    if arguments.json:
        _print_json(planned, folders, written)
    else:
        _print_text(planned, folders, written, arguments.program)
    return 0


def _refuse_options(arguments: argparse.Namespace) -> None:
    """Raise ``InvalidValueError`` for options that ``--task`` does not take."""
    refused = {
        "--backend": arguments.backend,
        "--step": arguments.steps,
        "--decoupled": arguments.decoupled,
        "--with-warmup": arguments.with_warmup,
    }
    for option, value in refused.items():
        if value:
            raise InvalidValueError(
                f"{option}: --task writes all models of the ensemble itself; leave one of them out"
            )
    if arguments.form and arguments.task != "detect":
        raise InvalidValueError("--form: only a detector has it; add --task detect")


def _planned(arguments: argparse.Namespace) -> TaskModels:
    """Plan the models that the arguments ask for; nothing is written yet."""
    path: Path = arguments.file
    return task_models(
        arguments.task,
        path,
        checked_name(arguments.name or path.stem),
        form=arguments.form,
        labels=arguments.labels,
        max_batch_size=arguments.max_batch_size,
        fields=dict(config_fields(arguments)),
        syntax=SYNTAX,
        onnx_runtime=arguments.onnx_runtime,
    )


# --- the package pillow ---------------------------------------------------------------------------


def _environment_files(planned: TaskModels, arguments: argparse.Namespace) -> dict[str, str]:
    """Return the two files that add pillow to the image, which lacks it.

    A repository that has one of them is described by its user, who gets the lines to add.
    """
    names = (_REQUIREMENTS, _DESCRIPTION)
    is_described = any(os.path.lexists(arguments.repository / name) for name in names)
    if arguments.program == _CHECKER or is_described:
        return {}
    return {
        _REQUIREMENTS: "pillow\n",
        _DESCRIPTION: f"[python_environments]\n{_environment(planned)}\n",
    }


def _environment(planned: TaskModels) -> str:
    """Return the line of ``triton-models.toml`` that gives the environment to the model."""
    entry = f'requirements = "{_REQUIREMENTS}", image_version = "{DEFAULT_VERSION}"'
    return f"{planned.python_model} = {{ {entry} }}"


# --- output ---------------------------------------------------------------------------------------


def _written(planned: TaskModels, folders: list[Path]) -> Iterator[str]:
    for model, folder in zip(planned.models, folders, strict=True):
        yield str(folder / "config.pbtxt")
        for path in model.files:
            yield str(folder / "1" / path)


def _print_json(planned: TaskModels, folders: list[Path], written: list[str]) -> None:
    document = {
        "folder": str(folders[-1]),
        "files": written,
        "recognized": list(planned.facts),
        "assumed": list(planned.assumptions),
    }
    print_json({**document, **described_folder(folders[-1]).to_dict()})


def _print_text(planned: TaskModels, folders: list[Path], written: list[str], program: str) -> None:
    """Print what was written, recognized and assumed, and the next commands."""
    print_tensors(described_folder(folders[-1]))
    for path in written:
        print_lines(f"wrote {path}")
    print_lines("")
    for fact in planned.facts:
        print_lines(f"recognized: {fact}")
    for assumption in planned.assumptions:
        print_lines(f"assumed:    {assumption}")
    decode = folders[0]
    print_lines(
        f"            Wrong? Change the parameters in {decode / 'config.pbtxt'}.",
        "",
        *_next_commands(planned, folders[-1], written, program),
    )


def _next_commands(
    planned: TaskModels, folder: Path, written: list[str], program: str
) -> Iterator[str]:
    """Yield the commands that check, run and call the new ensemble."""
    repository = shlex.quote(str(folder.parent))
    name = shlex.quote(folder.name)
    if program == _CHECKER:  # the commands below are those of constructs-triton
        yield f"{planned.python_model} needs the package pillow in the server's Python."
        yield f"Check it:  {program} check {repository}"
        yield f"Run it:    tritonserver --model-repository={repository}"
        return
    yield from _about_pillow(planned, folder.parent, written)
    yield f"Check it:  {program} check {repository}"
    yield f"Run it:    constructs-triton local up {repository} --model {name} --endpoint {name}"
    where = "" if folder.parent == Path("models") else f" --repository {repository}"
    # A picture alone has no batch dimension.
    batch = "--batch " if planned.is_batched else ""
    yield (
        f"Call it:   constructs-triton invoke {name} --input image=@picture.jpg {batch}"
        f"--endpoint-url http://127.0.0.1:8080{where}"
    )


def _about_pillow(planned: TaskModels, repository: Path, written: list[str]) -> Iterator[str]:
    """Yield how the package pillow comes into the image, which lacks it."""
    requirements, description = repository / _REQUIREMENTS, repository / _DESCRIPTION
    build = f"Build it:  constructs-triton env build {shlex.quote(str(requirements))}"
    if str(description) in written:
        yield f"The image has no pillow: {description} adds it to {planned.python_model}."
        yield build
        return
    yield f"The image has no pillow, which {planned.python_model} needs. Add it in two files:"
    yield f"  {requirements}:   pillow"
    yield f"  {description}: [python_environments]"
    yield f"    {_environment(planned)}"
    yield build
