"""``constructs-triton prices``: fetch prices of instances from AWS."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from constructs_triton_core.aws.aws_reader import AwsReader, make_session, region_of
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.program.progress import show_work
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_tools.planning.prices import price_of, write_prices

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``prices`` and its only action, ``fetch``."""
    parser.description = "Get prices of instances for `constructs-triton plan --prices`."
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    fetch = actions.add_parser(
        "fetch",
        help="ask the AWS Price List API, and print the prices",
        description="Ask the AWS Price List API for the on-demand price of an instance hour of SageMaker "
        "hosting, print it, and write a dated CSV file with --output. Needs the permission "
        "pricing:GetProducts. Discounts, Savings Plans and taxes are not included.",
    )
    fetch.add_argument("types", nargs="+", metavar="TYPE", help="instance types, for example ml.g5.xlarge")
    fetch.add_argument(
        "--region",
        metavar="REGION",
        help="AWS Region of the prices (default: that of your AWS configuration)",
    )
    fetch.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="CSV file to write for `constructs-triton plan --prices`",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the prices, and write the file if there is one."""
    types = [InstanceType.of(name).name for name in arguments.types]
    session = make_session(arguments.region)
    reader, region = AwsReader(session), region_of(session)
    with show_work("asking AWS for prices"):
        prices = {name: price_of(reader, region, name) for name in types}
    for name, price in prices.items():
        print_lines(f"{name:20} {price:f} USD per hour")
    if arguments.output:
        write_prices(arguments.output, prices, region, datetime.now(UTC).date())
        print_note(f"wrote {arguments.output}")
    return 0
