"""The prices of a command: from its arguments, from a file, or from AWS's price list."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from constructs_triton_core.aws.aws_reader import AwsError, AwsReader, region_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common, argument_type, pair_argument
from constructs_triton_tools.planning.csv_table import parse_measured_type
from constructs_triton_tools.planning.prices import price_of, read_prices
from constructs_triton_tools.planning.quantities import read_decimal, read_positive

if TYPE_CHECKING:
    import boto3


def _price(_place: str, text: str) -> tuple[str, Decimal]:
    name, price = pair_argument("TYPE=PRICE", "ml.g5.xlarge=1.41")(text)
    return parse_measured_type("instance type", name), read_positive(name, price)


#: Reads a number exactly.
decimal_argument = argument_type(read_decimal)


def add_price_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--price`` and ``--prices``."""
    parser.add_argument(
        "--price",
        action="extend",
        nargs="+",
        type=argument_type(_price),
        default=[],
        metavar="TYPE=PRICE",
        help="price per instance hour, for example ml.g5.xlarge=1.41; overrides --prices",
    )
    add_common(parser, "--prices")


def given_prices(arguments: argparse.Namespace) -> dict[str, Decimal]:
    """Return the prices of the file, replaced by those of the arguments.

    Raises:
        InvalidValueError: a type has two prices, or the file cannot be read.
    """
    given: dict[str, Decimal] = {}
    for name, price in arguments.price:
        if given.setdefault(name, price) != price:
            raise InvalidValueError(
                f'--price: must be given once per instance type, got "{name}" '
                f"with {given[name]} and {price}; remove one of them"
            )
    return {**(read_prices(arguments.prices) if arguments.prices else {}), **given}


def fetch_known_prices(
    session: boto3.Session, types: Iterable[str], not_read: list[str]
) -> dict[str, Decimal]:
    """Return the prices that the AWS Price List API has, and note the others in ``not_read``."""
    reader, region = AwsReader(session), region_of(session)
    found: dict[str, Decimal] = {}
    for name in types:
        try:
            found[name] = price_of(reader, region, name)
        except AwsError as error:
            not_read.append(f"prices: {error}, or use --prices")
            break
        except InvalidValueError:
            not_read.append(f"price of {name}: the price list has none for this Region; use --prices")
    return found


def cost_per_hour(session: boto3.Session, instances: Mapping[str, int]) -> str:
    """Return for a question what instances cost, by their types."""
    prices = fetch_known_prices(session, sorted(instances), [])
    if not instances or prices.keys() != instances.keys():
        return "an unknown price"
    return f"{sum((prices[name] * count for name, count in instances.items()), Decimal(0)):.2f} USD per hour"
