"""``constructs-triton start``: create a stopped endpoint again."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.untrusted.terminal import print_json, print_lines
from constructs_triton_tools.cli.deployed.aws_arguments import open_session
from constructs_triton_tools.cli.deployed.stop import add_file_arguments, file_of
from constructs_triton_tools.operations.stopping.aws_calls import AwsCalls
from constructs_triton_tools.operations.stopping.saved_endpoint import STARTED
from constructs_triton_tools.operations.stopping.start import start_endpoint

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Create an endpoint again that `constructs-triton stop` deleted, wait until it is in service, and "
        "restore its instance counts, weights and scaling. After a failure, for example without capacity, "
        "run the same command again. The exit code is 0 only if the endpoint is in service."
    )
    add_file_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Start the endpoint, and print what is left to do."""
    aws = AwsCalls(open_session(arguments), arguments.timeout)
    path = file_of(arguments)
    notes = start_endpoint(aws, arguments.endpoint, path, now=datetime.now(UTC))
    if arguments.json:
        print_json({"endpoint": arguments.endpoint, "file": str(path), "phase": STARTED, "notes": notes})
    else:
        print_lines(*notes, f"endpoint {arguments.endpoint} is in service, with the scaling of {path}")
    return EXIT_SUCCESS
