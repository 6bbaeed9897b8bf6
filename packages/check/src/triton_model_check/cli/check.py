"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.findings import Verdict
from constructs_triton_core.program.argument_types import add_common, version_argument, whole_number
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import show_work
from triton_model_check.cli.check_output import print_report, print_report_json
from triton_model_check.cli.fixing import add_fixes, print_differences, with_fixes
from triton_model_check.cli.target_check import Checked, check_for_target
from triton_model_check.cli.tensor_options import add_called_models

AskServer = Callable[[Path], dict[str, str]]
"""Returns what a Triton server says of each model of a folder."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Check a model repository by the rules of Triton and SageMaker. Prints every error with its file, "
        "line and fix. Exit code 1 if there are errors; warnings do not count. What "
        "triton-models.toml in PATH declares about the models applies too."
    )
    parser.add_argument("path", metavar="PATH", help="a folder with one subfolder per model")
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
    add_fixes(parser)
    add_called_models(parser)
    add_common(parser, "--json")


def run(arguments: argparse.Namespace, ask_server: AskServer | None = None) -> int:
    """Check and print; return 1 if there are errors, else 0.

    Args:
        arguments: Those of the command.
        ask_server: Loads the models of a folder in a server. Default: no server is asked.
    """
    root = Path(arguments.path)

    def check(path: Path) -> Checked:
        return check_for_target(argparse.Namespace(**{**vars(arguments), "path": str(path)}))

    if arguments.diff:
        return EXIT_WRONG if print_differences(check, root, arguments) else EXIT_SUCCESS
    with show_work(f"checking {root}"):
        checked = with_fixes(check, root, arguments)
    answers = None if ask_server is None else ask_server(root)
    if arguments.json:
        print_report_json(checked, answers)
    else:
        print_report(checked, root, answers)
    return EXIT_SUCCESS if checked.report.verdict is Verdict.LOADS else EXIT_WRONG
