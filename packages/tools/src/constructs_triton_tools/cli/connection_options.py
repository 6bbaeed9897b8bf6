"""The options of commands that send requests to an endpoint or to an inference component."""

from __future__ import annotations

import argparse
from pathlib import Path

from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common, number


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
    add_common(parser, "--endpoint-url", "--region", "--profile")


def add_index(parser: argparse._ActionsContainer) -> None:
    """Declare the option that names the index of a multi-model endpoint."""
    parser.add_argument(
        "--index",
        metavar="S3_URI",
        help="index.json that maps model names to archives (default: that of the endpoint, which needs "
        "permission to describe it)",
    )


def add_request_options(parser: argparse._ActionsContainer) -> None:
    """Declare which model answers requests, and the form of their inputs."""
    # fmt: off
    parser.add_argument("--batch", action="store_true",
                        help="add a batch axis of size 1 to every input (for max_batch_size above 0)")
    parser.add_argument("--repository", type=Path, default=Path("models"), metavar="DIR",
                        help="model repository with the shapes of random data, and with the names of tensors "
                             "for errors (default: models)")
    parser.add_argument("--model", metavar="NAME",
                        help="model of that repository (default: the one with the endpoint's name, or the "
                             "only one)")
    parser.add_argument("--shape", action="append", default=[], dest="shapes", metavar="NAME=DIMS",
                        help="dims of an input for random data, without the batch dimension (default: 1 for "
                             "each variable size)")
    parser.add_argument("--target-model", metavar="MODEL",
                        help="model of a multi-model endpoint, by its name or by that of its archive")
    parser.add_argument("--target-variant", metavar="NAME",
                        help="variant that answers, whose instances a load test counts alone (default: "
                             "SageMaker chooses one by the weights)")
    # fmt: on
