"""``triton-model-check lsp``: the checks in an editor, by the Language Server Protocol."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec

from constructs_triton_core.errors import MissingDependencyError
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.untrusted.terminal import print_note
from triton_model_check.cli.check import add_checking


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Report findings of config.pbtxt and model.py in an editor, as you type, by the Language "
        "Server Protocol on standard input and output. Your editor starts this command. "
        "The options can be its initializationOptions too, such as "
        '{"target": "kubernetes", "image-version": "26.05"}; '
        "a project's settings apply as they do to `check`. "
        "It needs `pip install 'triton-model-check[lsp]'`."
    )
    add_checking(parser)
    parser.add_argument(
        "--stdio",
        action="store_true",
        help="use standard input and output, which is always so; some editors add this option",
    )
    # What `check` has besides.
    parser.set_defaults(archive=False)


def run(arguments: argparse.Namespace) -> int:
    """Answer an editor until it ends the connection.

    Raises:
        MissingDependencyError: pygls is not installed.
    """
    if find_spec("pygls") is None:
        raise MissingDependencyError(
            "pygls is not installed; run `pip install 'triton-model-check[lsp]'`"
        )
    from triton_model_check.editor.features import new_server

    if sys.stdin.isatty():
        print_note("waiting for an editor, which has to start this command; press Ctrl-C to end it")

    # Nothing else may be printed on the output of the protocol, such as a warning of a library.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        new_server(arguments).start_io(sys.stdin.buffer, output)
    return EXIT_SUCCESS
