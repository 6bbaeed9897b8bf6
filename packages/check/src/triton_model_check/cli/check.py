"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from constructs_triton_core.findings import Verdict
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import show_work
from triton_model_check.cli.check_paths import (
    NamedModels,
    find_repositories,
    from_working_folder,
    of_named_models,
)
from triton_model_check.cli.chosen import add_choice, choose, listed
from triton_model_check.cli.settings import Settings
from triton_model_check.cli.target_check import add_target_arguments, check_for_target
from triton_model_check.cli.tensor_options import add_called_models
from triton_model_check.model_config.target import Platform
from triton_model_check.reporting.formats import STATISTICS, add_format, print_results
from triton_model_check.reporting.results import Result

AskServer = Callable[[Path], dict[str, str]]
"""Returns what a Triton server says of each model of a folder."""


def add_arguments(parser: argparse.ArgumentParser, default: Platform | None = "server") -> None:
    """Declare the command's arguments; ``default`` is where the models run, ``None`` for SageMaker."""
    parser.description = (
        "Check a model repository by the rules of Triton and of where it will run. Prints every error with "
        "its file, line and fix. Exit code 1 if there are errors; warnings do not count. What "
        "triton-models.toml in PATH declares about the models applies too."
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a folder with one subfolder per model; or a model's folder, or a file in it, to print only the "
        "findings of this model and of those that need it",
    )
    add_target_arguments(parser, default)
    add_choice(parser)
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
    add_format(parser)


def run(arguments: argparse.Namespace, ask_server: AskServer | None = None) -> int:
    """Check and print; return 1 if there are errors, else 0.

    Args:
        arguments: Those of the command.
        ask_server: Loads the models of a folder in a server. Default: no server is asked.
    """
    named = _repositories(arguments)
    results = [_check(each, arguments, ask_server) for each in named]
    if len(results) > 1:
        results = [
            replace(each, report=from_working_folder(each.report), name=each.report.repository)
            for each in results
        ]
    print_results(results, _format(arguments), arguments.output_file)
    loads = all(each.report.verdict is Verdict.LOADS for each in results)
    return EXIT_SUCCESS if loads else EXIT_WRONG


def _format(arguments: argparse.Namespace) -> str:
    is_table = arguments.statistics and arguments.output_format == "text"
    return STATISTICS if is_table else str(arguments.output_format)


def only_repository(arguments: argparse.Namespace) -> Path | None:
    """Return the repository if the arguments are the path of one, and not of models in it."""
    named = _repositories(arguments)
    return named[0].repository if len(named) == 1 and not named[0].models else None


def _repositories(arguments: argparse.Namespace) -> list[NamedModels]:
    if arguments.archive:
        return [NamedModels(Path(each), frozenset()) for each in arguments.paths]
    return find_repositories(arguments.paths)


def _check(named: NamedModels, arguments: argparse.Namespace, ask_server: AskServer | None) -> Result:
    with show_work(f"checking {named.repository}"):
        checked = check_for_target(argparse.Namespace(**{**vars(arguments), "path": str(named.repository)}))
    report = of_named_models(checked.report, named)
    options = listed(arguments.select), listed(arguments.ignore)
    report = choose(report, Settings.of(named.repository), *options)
    answers = None if ask_server is None else ask_server(named.repository)
    details = {
        "target": checked.target and checked.target.platform,
        "image_version": checked.target and checked.target.image_version,
        "default_models": list(checked.default_models),
    }
    return Result(report, checked.where, details, answers, subject=checked.subject)
