"""``constructs-triton cost prices``: fetch prices of instances from AWS."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.progress import show_work
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_tools.cli.deployed.aws_arguments import open_session
from constructs_triton_tools.cli.dialogue import recommend
from constructs_triton_tools.planning.price_list import PRICE_LIST_REGION, fetch_prices, write_prices

if TYPE_CHECKING:
    import boto3

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Ask the AWS Price List API for the on-demand price of an instance hour of SageMaker hosting, print "
        "it, and write a dated CSV file with --output. Needs the permission pricing:GetProducts. Discounts, "
        "Savings Plans and taxes are not included."
    )
    parser.add_argument("types", nargs="+", metavar="TYPE", help="instance types, for example ml.g5.xlarge")
    add_common(parser, "--region", "--profile")
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV file to write for the option --prices")


def run(arguments: argparse.Namespace) -> int:
    """Print the prices, and write the file if there is one."""
    types = [InstanceType.of(name).name for name in arguments.types]
    client, region = _client(open_session(arguments))
    with show_work("asking AWS for prices"):
        prices = _guard(lambda: fetch_prices(client, region, types))
    for name, price in prices.items():
        print_lines(f"{name:20} {price:f} USD per hour")
    if arguments.output:
        write_prices(arguments.output, prices, region, datetime.now(UTC).date())
        print_note(f"wrote {arguments.output}")
        recommend(f"plan BENCHMARK --requests-per-second N --prices {arguments.output}")
    return 0


def _client(session: boto3.Session) -> tuple[Any, str]:
    if session.region_name is None:
        raise InvalidValueError(
            "--region: there is no default Region; set --region, for example to eu-west-1"
        )
    return _guard(lambda: session.client("pricing", region_name=PRICE_LIST_REGION)), session.region_name


def _guard(action: Any) -> Any:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return action()
    except (BotoCoreError, ClientError) as error:
        raise InvalidValueError(
            f"AWS: the price list cannot be read ({error}); log in with the permission pricing:GetProducts, "
            "or use --price"
        ) from None
