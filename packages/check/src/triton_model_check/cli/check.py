"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from constructs_triton_core.findings import Verdict
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import show_work
from triton_model_check.cli.check_output import print_report, print_report_json
from triton_model_check.cli.target_check import add_target_arguments, check_for_target
from triton_model_check.cli.tensor_options import add_called_models
from triton_model_check.model_config.target import Platform

AskServer = Callable[[Path], dict[str, str]]
"""Returns what a Triton server says of each model of a folder."""


def add_arguments(parser: argparse.ArgumentParser, default: Platform | None = "server") -> None:
    """Declare the command's arguments; ``default`` is where the models run, ``None`` for SageMaker."""
    parser.description = (
        "Check a model repository by the rules of Triton and of where it will run. Prints every error with "
        "its file, line and fix. Exit code 1 if there are errors; warnings do not count. What "
        "triton-models.toml in PATH declares about the models applies too."
    )
    parser.add_argument("path", metavar="PATH", help="a folder with one subfolder per model")
    add_target_arguments(parser, default)
    parser.add_argument(
        "--no-files",
        action="store_true",
        help="check only the configurations; for weights and version folders that are stored elsewhere",
    )
    parser.add_argument(
        "--archive",
        action="store_true",
        help="PATH is the content of one archive, not a repository that becomes several archives",
    )
    add_called_models(parser)
    add_common(parser, "--json")


def run(arguments: argparse.Namespace, ask_server: AskServer | None = None) -> int:
    """Check and print; return 1 if there are errors, else 0.

    Args:
        arguments: Those of the command.
        ask_server: Loads the models of a folder in a server. Default: no server is asked.
    """
    with show_work(f"checking {arguments.path}"):
        checked = check_for_target(arguments)
    answers = None if ask_server is None else ask_server(Path(arguments.path))
    if arguments.json:
        print_report_json(checked, answers)
    else:
        print_report(checked, Path(arguments.path), answers)
    return EXIT_SUCCESS if checked.report.verdict is Verdict.LOADS else EXIT_WRONG
