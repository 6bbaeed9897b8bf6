"""The option for the form of a command's findings, and what prints or writes them."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path

from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.written_files import write_whole

__all__ = ["add_format", "print_or_write"]

_FORMS = {
    "text": "text",
    "json": "json",
    "sarif": "sarif (for code scanning)",
    "github": "github (annotations of GitHub Actions)",
    "gitlab": "gitlab (a Code Quality report)",
}


def add_format(parser: argparse.ArgumentParser, formats: Mapping[str, object]) -> None:
    """Declare the options of the output.

    Args:
        parser: The parser of the command.
        formats: The formats that the command has.
    """
    *first, last = (_FORMS[name] for name in formats)
    parser.add_argument(
        "--output-format",
        "--format",
        choices=tuple(formats),
        default="text",
        metavar="FORMAT",
        help=f"form of the output: {', '.join(first)} or {last}; default: text",
    )
    parser.add_argument("--output-file", metavar="FILE", help="write the output to FILE instead")
    add_common(parser, "--json", action="store_const", const="json", dest="output_format")


def print_or_write(print_: Callable[[], None], output_file: str | None) -> None:
    """Print, or write to a file what would be printed, as a whole or not at all.

    Args:
        print_: Prints the output.
        output_file: The file; ``None`` prints.
    """
    if output_file is None:
        print_()
        return
    with redirect_stdout(io.StringIO()) as text:
        print_()
    write_whole(Path(output_file), text.getvalue())
