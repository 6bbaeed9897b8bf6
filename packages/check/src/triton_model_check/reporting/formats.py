"""Prints the results of a check in the format that the user asks for, or writes them to a file."""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.regular_files import write_whole
from triton_model_check.reporting.results import Result

_ROOM = __name__.rpartition(".")[0]
#: The function of each format; its module is imported when it is used.
_FORMATS = {
    "text": ("text", "print_text"),
    "json": ("text", "print_as_json"),
    "sarif": ("code_hosts", "print_sarif"),
    "github": ("code_hosts", "print_github"),
    "gitlab": ("code_hosts", "print_gitlab"),
}


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the output."""
    parser.add_argument(
        "--output-format",
        choices=tuple(_FORMATS),
        default="text",
        help=(
            "form of the output: text, json, sarif (for code scanning), github (annotations of "
            "GitHub Actions) or gitlab (a Code Quality report); default: text"
        ),
    )
    parser.add_argument("--output-file", metavar="FILE", help="write the output to FILE instead")
    add_common(parser, "--json", action="store_const", const="json", dest="output_format")


def print_results(
    results: Sequence[Result], output_format: str, output_file: str | None = None
) -> None:
    """Print the results; a file has no colours and is written as a whole or not at all."""
    module, function = _FORMATS[output_format]
    print_ = getattr(import_module(f"{_ROOM}.{module}"), function)
    if output_file is None:
        print_(results)
        return
    with redirect_stdout(io.StringIO()) as text:
        print_(results)
    write_whole(Path(output_file), text.getvalue())
