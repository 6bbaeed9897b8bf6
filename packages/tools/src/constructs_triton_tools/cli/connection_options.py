"""The options of commands that send requests to an endpoint or to an inference component."""

from __future__ import annotations

import argparse

from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import number

__all__ = ["add_connection_options", "add_index"]


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Declare what ``invoke.connect`` and requests to components read."""
    parser.add_argument(
        "--inference-component", metavar="NAME", help="inference component, on an endpoint that has them"
    )
    parser.add_argument(
        "--wake-timeout",
        type=number(RangeLimit(0, None, "seconds")),
        default=0,
        metavar="SECONDS",
        help="how long to wait for the first copy of a component that scales to zero (default: 0)",
    )
    add_index(parser)
    parser.add_argument("--endpoint-url", metavar="URL", help="URL of a local run (default: AWS)")
    parser.add_argument(
        "--region", metavar="REGION", help="AWS Region (default: that of your AWS configuration)"
    )


def add_index(parser: argparse._ActionsContainer) -> None:
    """Declare the option that names the index of a multi-model endpoint."""
    parser.add_argument(
        "--index",
        metavar="S3_URI",
        help="index.json that maps model names to archives (default: that of the endpoint, which needs "
        "permission to describe it)",
    )
