"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.findings import Verdict
from constructs_triton_core.program.argument_types import add_common, version_argument, whole_number
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import show_work
from triton_model_check.cli.check_output import print_reports, print_reports_json
from triton_model_check.cli.check_paths import NamedModels, find_repositories, of_named_models
from triton_model_check.cli.target_check import Checked, check_for_target
from triton_model_check.cli.tensor_options import add_called_models
from triton_model_check.model_config.choosing.choice import Choice

AskServer = Callable[[Path], dict[str, str]]
"""Returns what a Triton server says of each model of a folder."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Check a model repository by the rules of Triton and SageMaker. Prints every error with its file, "
        "line and fix. Exit code 1 if there are errors; warnings do not count. What "
        "triton-models.toml in PATH declares about the models applies too."
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a folder with one subfolder per model; or a model's folder, or a file in it, to print only the "
        "findings of this model and of those that need it",
    )
    _add_choice(parser)
    parser.add_argument(
        "--endpoint",
        choices=("single", "multi-model", "none"),
        help="type of the SageMaker endpoint; none checks only Triton's rules (default: multi-model for "
        "several models that do not need each other, else single)",
    )
    parser.add_argument(
        "--gpus",
        type=whole_number(RangeLimit(0, None)),
        metavar="N",
        help="number of NVIDIA GPUs of the instance, 0 for a CPU instance",
    )
    parser.add_argument(
        "--instance-type",
        metavar="TYPE",
        help="instance type of the endpoint: its GPUs, memory and disk are checked too, and the GPU of plans",
    )
    parser.add_argument(
        "--image-version",
        type=version_argument,
        metavar="V",
        help="version of the Triton image, for example 26.05",
    )
    parser.add_argument(
        "--default-model",
        metavar="NAME",
        help="model that a single-model endpoint serves (SAGEMAKER_TRITON_DEFAULT_MODEL_NAME)",
    )
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


def _add_choice(parser: argparse.ArgumentParser) -> None:
    for option, words in (("--select", "print only"), ("--ignore", "do not print")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="CODES",
            help=f"{words} these checks: codes or groups, separated by commas; may be repeated",
        )
    parser.add_argument(
        "--statistics", action="store_true", help="print how often each code was found, not each finding"
    )


def run(arguments: argparse.Namespace, ask_server: AskServer | None = None) -> int:
    """Check and print; return 1 if there are errors, else 0.

    Args:
        arguments: Those of the command.
        ask_server: Loads the models of a folder in a server. Default: no server is asked.
    """
    choice = Choice.of(_listed(arguments.select), _listed(arguments.ignore))
    named = _repositories(arguments)
    checked = [_check(each, arguments, choice) for each in named]
    answers = [None if ask_server is None else ask_server(each.repository) for each in named]
    if arguments.json:
        print_reports_json(checked, answers, with_counts=arguments.statistics)
    else:
        print_reports(checked, answers, counts_only=arguments.statistics)
    loads = all(each.report.verdict is Verdict.LOADS for each in checked)
    return EXIT_SUCCESS if loads else EXIT_WRONG


def only_repository(arguments: argparse.Namespace) -> Path | None:
    """Return the repository if the arguments are the path of one, and not of models in it."""
    named = _repositories(arguments)
    return named[0].repository if len(named) == 1 and not named[0].models else None


def _repositories(arguments: argparse.Namespace) -> list[NamedModels]:
    if arguments.archive:
        return [NamedModels(Path(each), frozenset()) for each in arguments.paths]
    return find_repositories(arguments.paths)


def _check(named: NamedModels, arguments: argparse.Namespace, choice: Choice) -> Checked:
    with show_work(f"checking {named.repository}"):
        checked = check_for_target(argparse.Namespace(**{**vars(arguments), "path": str(named.repository)}))
    return checked._replace(report=choice.apply(of_named_models(checked.report, named)))


def _listed(values: Iterable[str]) -> list[str]:
    """Return the names of an option that may be repeated, separated by commas."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
