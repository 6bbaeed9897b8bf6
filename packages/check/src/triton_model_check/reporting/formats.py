"""Prints the results of a check in the format that the user asks for, or writes them to a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from constructs_triton_core.program import output_formats
from constructs_triton_core.program.output_formats import print_or_write
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
    output_formats.add_format(parser, _FORMATS)


def print_results(
    results: Sequence[Result], output_format: str, output_file: str | None = None
) -> None:
    """Print the results; a file has no colours and is written as a whole or not at all."""
    module, function = _FORMATS[output_format]
    print_ = getattr(import_module(f"{_ROOM}.{module}"), function)
    print_or_write(partial(print_, results), output_file)
