"""``constructs-triton cost prices`` fetches prices of instances from AWS;
the options that give prices.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from constructs_triton_core.aws_reader import AwsReader, region_of
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.terminal import print_lines, print_note, show_work
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import open_session
from constructs_triton_tools.planning.prices import price_of, write_prices


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Ask the AWS Price List API for the on-demand price of an instance hour of SageMaker "
        "hosting, print it, and write a dated CSV file with --output. Needs the permission "
        "pricing:GetProducts. Discounts, Savings Plans and taxes are not included."
    )
    parser.add_argument(
        "types", nargs="+", metavar="TYPE", help="instance types, for example ml.g5.xlarge"
    )
    add_common(parser, "--region", "--profile")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="CSV file to write for the option --prices"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the prices, and write the file if there is one."""
    types = [InstanceType.of(name).name for name in arguments.types]
    session = open_session(arguments)
    reader = AwsReader(session)
    region = region_of(session)
    with show_work("asking AWS for prices"):
        prices = {name: price_of(reader, region, name) for name in types}
    for name, price in prices.items():
        print_lines(f"{name:20} {price:f} USD per hour")
    if arguments.output:
        write_prices(arguments.output, prices, region, datetime.now(UTC).date())
        print_note(f"wrote {arguments.output}")
        recommend(f"plan BENCHMARK --requests-per-second N --prices {arguments.output}")
    return 0
