"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from constructs_triton_core.findings import Verdict
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import show_work
from triton_model_check.choosing.settings import Settings
from triton_model_check.cli.check_paths import NamedModels, find_repositories, of_named_models
from triton_model_check.cli.chosen import add_codes, add_statistics, choose, listed
from triton_model_check.cli.fixable import without_fixes_elsewhere
from triton_model_check.cli.target_check import Checked, add_target_arguments, check_for_target
from triton_model_check.cli.tensor_options import add_called_models
from triton_model_check.model_config.server_answer import ServerAnswer
from triton_model_check.model_config.target import Platform
from triton_model_check.reporting.formats import add_format, print_results
from triton_model_check.reporting.results import Result

AskServer = Callable[[Path, Collection[str]], Mapping[str, ServerAnswer]]
"""Returns what a Triton server says of models of a folder; no names mean all models."""


def add_arguments(parser: argparse.ArgumentParser, default: Platform | None = "server") -> None:
    """Declare the command's arguments; ``default`` is where the models run,
    ``None`` for SageMaker.
    """
    parser.description = (
        "Check a model repository by the rules of Triton and of where it will run. Prints every "
        "error with its file, line and fix. Exit code 1 if there are errors, and with "
        "--fail-on-unknown if something was not checked; warnings do not count. "
        "What triton-models.toml in PATH declares about the models applies too."
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
    add_checking(parser, default)
    add_statistics(parser)
    parser.add_argument(
        "--archive",
        action="store_true",
        help="PATH is the content of one archive, not a repository that becomes several archives",
    )
    parser.add_argument(
        "--fail-on-unknown",
        action="store_true",
        help="exit with 1 also if something that decides was not checked (verdict unknown)",
    )
    _add_fixes(parser)
    add_format(parser)


def add_checking(parser: argparse.ArgumentParser, default: Platform | None = "server") -> None:
    """Declare for which place, by which rules and with which files models are checked."""
    add_target_arguments(parser, default)
    add_codes(parser)
    parser.add_argument(
        "--no-files",
        action="store_true",
        help=(
            "check without weights and version folders, "
            "which are stored elsewhere; a model.py is checked"
        ),
    )
    add_called_models(parser)


def _add_fixes(parser: argparse.ArgumentParser) -> None:
    """Declare the options of automatic fixes."""
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

    ``ask_server`` loads models in a server, whose refusals are errors. By default no server is
    asked.
    """
    return check_and_print(arguments, ask_server)[0]


def check_and_print(
    arguments: argparse.Namespace, ask_server: AskServer | None = None
) -> tuple[int, list[Checked]]:
    """Check and print, as :func:`run`; return the exit code, and what was found in each repository.

    Nothing is found with ``--diff``, which prints what could be changed.
    """
    found = [_Repository(each, arguments) for each in _repositories(arguments)]
    if arguments.diff:
        from triton_model_check.cli.fixing import print_differences

        differ = [print_differences(each.check, each.path, arguments) for each in found]
        return (EXIT_WRONG if any(differ) else EXIT_SUCCESS), []

    checked: list[Checked] = []
    results: list[Result] = []
    for repository in found:
        answers = repository.fix_and_ask(ask_server)
        found_here = repository.check(repository.path, tuple((answers or {}).values()))
        checked.append(found_here._replace(path=repository.path))
        results.append(_result(checked[-1], answers, is_counted=arguments.statistics))
    print_results(results, arguments.output_format, arguments.output_file)

    is_wrong = any(
        repository.fails_with(each.report.verdict)
        for repository, each in zip(found, checked, strict=True)
    )
    return (EXIT_WRONG if is_wrong else EXIT_SUCCESS), checked


def _repositories(arguments: argparse.Namespace) -> list[NamedModels]:
    if arguments.archive:
        return [NamedModels(Path(each), frozenset()) for each in arguments.paths]
    return find_repositories(arguments.paths)


def check_named(
    named: NamedModels,
    arguments: argparse.Namespace,
    settings: Settings,
    answers: Sequence[ServerAnswer] = (),
    *,
    is_saved: bool = True,
) -> Checked:
    """Check the named models of a repository; return what options and settings choose of it.

    Args:
        named: The repository and the models.
        arguments: What :func:`add_checking` has declared.
        settings: What the project has decided.
        answers: What a real server says of the models. Default: none was asked.
        is_saved: Whether the files are those on disk, as for :func:`check_for_target`.
    """
    path = named.repository
    checked = check_for_target(path, arguments, settings, named.models, answers, is_saved=is_saved)
    report = of_named_models(checked.report, named)
    options = listed(arguments.select), listed(arguments.ignore)
    chosen = choose(report, settings, *options)
    return checked._replace(report=without_fixes_elsewhere(chosen, path))


class _Repository:
    """One repository of the arguments, which is checked by the settings of its project."""

    def __init__(self, named: NamedModels, arguments: argparse.Namespace) -> None:
        self.path = named.repository
        self._named = named
        self._arguments = arguments
        self._settings = Settings.of(named.repository)

    def check(self, path: Path, answers: Sequence[ServerAnswer] = ()) -> Checked:
        """Check the repository, or the copy of it at ``path``, with what a server says of it."""
        named = self._named._replace(repository=path)
        with show_work(f"checking {self.path}"):
            return check_named(named, self._arguments, self._settings, answers)

    def fix_and_ask(self, ask_server: AskServer | None) -> Mapping[str, ServerAnswer] | None:
        """Correct the files if ``--fix`` is given; return what the server says of the models then.

        ``None`` if no server is asked.
        """
        if self._arguments.fix:
            from triton_model_check.cli.fixing import with_fixes

            with_fixes(self.check, self.path, is_unsafe=self._arguments.unsafe_fixes)
        return None if ask_server is None else ask_server(self.path, self._named.models)

    def fails_with(self, verdict: Verdict) -> bool:
        """Return whether a verdict makes the command exit with 1."""
        if verdict is Verdict.UNKNOWN:
            return self._arguments.fail_on_unknown or self._settings.fail_on_unknown
        return verdict is not Verdict.LOADS


def _result(
    checked: Checked, answers: Mapping[str, ServerAnswer] | None, *, is_counted: bool
) -> Result:
    """Return what the command prints of one checked target."""
    target = checked.target
    details = {
        "target": target and target.platform,
        "image_version": target and target.image_version,
        "default_models": list(checked.default_models),
        "models": list(checked.models),
    }
    said = None if answers is None else {name: str(each) for name, each in answers.items()}
    return Result(
        checked.report, checked.subject, checked.where, checked.thing, details, said, is_counted
    )
