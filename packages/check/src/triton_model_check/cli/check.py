"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from constructs_triton_core.findings import Verdict
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import show_work
from triton_model_check.choosing.settings import Settings
from triton_model_check.cli.check_paths import NamedModels, find_repositories, of_named_models
from triton_model_check.cli.chosen import add_choice, choose, listed
from triton_model_check.cli.target_check import Checked, add_target_arguments, check_for_target
from triton_model_check.cli.tensor_options import add_called_models
from triton_model_check.model_config.target import Platform
from triton_model_check.reporting.formats import add_format, print_results
from triton_model_check.reporting.results import Result

AskServer = Callable[[Path], dict[str, str]]
"""Returns what a Triton server says of each model of a folder."""


def add_arguments(parser: argparse.ArgumentParser, default: Platform | None = "server") -> None:
    """Declare the command's arguments; ``default`` is where the models run,
    ``None`` for SageMaker.
    """
    parser.description = (
        "Check a model repository by the rules of Triton and of where it will run. Prints every "
        "error with its file, line and fix. Exit code 1 if there are errors; warnings do not "
        "count. What triton-models.toml in PATH declares about the models applies too."
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help=(
            "a folder with one subfolder per model; or a model's folder, or a file in it, to print "
            "only the findings of this model and of those that need it. "
            "Each repository is checked alone"
        ),
    )
    add_target_arguments(parser, default)
    add_choice(parser)
    parser.add_argument(
        "--no-files",
        action="store_true",
        help=(
            "check without weights and version folders, "
            "which are stored elsewhere; a model.py is checked"
        ),
    )
    parser.add_argument(
        "--archive",
        action="store_true",
        help="PATH is the content of one archive, not a repository that becomes several archives",
    )
    _add_fixes(parser)
    add_called_models(parser)
    add_format(parser)


def _add_fixes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fix", action="store_true", help="correct the files where one spelling is possible"
    )
    parser.add_argument(
        "--diff",
        action="store_true",
        help="print what --fix would change, and exit with 1 if it is anything",
    )
    parser.add_argument(
        "--unsafe-fixes",
        action="store_true",
        help="with --fix or --diff, apply also fixes that guess what you meant",
    )


def run(arguments: argparse.Namespace, ask_server: AskServer | None = None) -> int:
    """Check and print; return 1 if there are errors, else 0.

    ``ask_server`` loads the models of a folder in a server. By default no server is asked.
    """
    named = _repositories(arguments)
    checks = [(_check_of(each, arguments), each.repository) for each in named]
    if arguments.diff:
        from triton_model_check.cli.fixing import print_differences

        differ = [print_differences(check, root, arguments) for check, root in checks]
        return EXIT_WRONG if any(differ) else EXIT_SUCCESS
    if arguments.fix:
        from triton_model_check.cli.fixing import with_fixes

        checked = [
            with_fixes(check, root, is_unsafe=arguments.unsafe_fixes) for check, root in checks
        ]
    else:
        checked = [check(root) for check, root in checks]
    answers = [None if ask_server is None else ask_server(each.repository) for each in named]
    results = [
        _result(*each, is_counted=arguments.statistics)
        for each in zip(checked, answers, strict=True)
    ]
    print_results(results, arguments.output_format, arguments.output_file)
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


def _check_of(named: NamedModels, arguments: argparse.Namespace) -> Callable[[Path], Checked]:
    """Return what checks a repository, or a copy of it, by the settings of its project."""
    settings = Settings.of(named.repository)
    options = listed(arguments.select), listed(arguments.ignore)

    def check(path: Path) -> Checked:
        with show_work(f"checking {named.repository}"):
            checked = check_for_target(path, arguments, settings)
        report = of_named_models(checked.report, named._replace(repository=path))
        return checked._replace(report=choose(report, settings, *options))

    return check


def _result(checked: Checked, answers: dict[str, str] | None, *, is_counted: bool) -> Result:
    target = checked.target
    details = {
        "target": target and target.platform,
        "image_version": target and target.image_version,
        "default_models": list(checked.default_models),
    }
    return Result(checked.report, checked.subject, checked.where, details, answers, is_counted)
