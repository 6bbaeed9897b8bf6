"""The options of commands that call an inference component."""

from __future__ import annotations

import argparse

from constructs_triton.cli.argument_types import number
from constructs_triton.facts.limits import RangeLimit

__all__ = ["add_component_arguments"]


def add_component_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments for an endpoint with inference components."""
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
