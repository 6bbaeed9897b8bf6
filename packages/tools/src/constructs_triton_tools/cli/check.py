"""``constructs-triton check``: the checker's command,
which can load the models in a Triton server too.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.untrusted.terminal import show_work
from constructs_triton_tools.cli.next_command import recommend
from triton_model_check.cli import check


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    check.add_arguments(parser, default=None)
    parser.add_argument(
        "--server",
        action="store_true",
        help=(
            "load every model in the Triton server of nvidia-pytriton too, "
            "and print whether each loads"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    """Check and print; return 1 if there are errors, else 0."""
    code = check.run(arguments, _ask_server if arguments.server else None)
    repository = check.only_repository(arguments)
    is_read = arguments.output_format == "text" and not arguments.archive
    if code == EXIT_SUCCESS and is_read and repository is not None:
        recommend(f"local up {shlex.quote(str(repository))}")
    return code


def _ask_server(path: Path) -> dict[str, str]:
    from constructs_triton_tools.local.server_check import ask_server

    with show_work("loading the models in Triton"):
        return ask_server(path)
