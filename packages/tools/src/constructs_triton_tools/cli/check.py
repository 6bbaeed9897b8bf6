"""``constructs-triton check``: the checker's command,
which can load the models in a Triton server too.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.untrusted.terminal import show_work
from constructs_triton_tools.cli.next_command import recommend
from triton_model_check.cli import check
from triton_model_check.cli.target_check import Checked
from triton_model_check.model_config.server_answer import ServerAnswer
from triton_model_check.model_repository import ModelRepository


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    check.add_arguments(parser, default=None)
    parser.add_argument(
        "--server",
        action="store_true",
        help=(
            "load every model in the Triton server of nvidia-pytriton too; "
            "a model that it refuses is an error"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    """Check and print; return 1 if there are errors, else 0."""
    code, checked = check.check_and_print(arguments, _ask_server if arguments.server else None)
    is_read = arguments.output_format == "text" and not arguments.archive
    if code == EXIT_SUCCESS and is_read and len(checked) == 1 and not checked[0].models:
        recommend(_local_up(checked[0], arguments.called_models))
    return code


def _local_up(checked: Checked, called_models: Sequence[tuple[str, str]] | None) -> str:
    """Return the command that runs the models that were checked, for the same endpoint."""
    words = ["local", "up", str(checked.path)]
    several = checked.has_several
    if several is None:
        repository = ModelRepository.from_directory(checked.report.repository)
        several = len(repository.top_level_models()) > 1
    if several and checked.default_models:
        words += ["--model", checked.default_models[0]]
    elif several:
        words.append("--multi-model")
    for caller, called in called_models or ():
        words += ["--called-models", f"{caller}={called}"]
    return shlex.join(words)


def _ask_server(path: Path, names: Collection[str]) -> dict[str, ServerAnswer]:
    from constructs_triton_tools.local.server_check import ask_server

    with show_work("loading the models in Triton"):
        return ask_server(path, names)
