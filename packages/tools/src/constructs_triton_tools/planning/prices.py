"""Prices of an instance hour by instance type, from a file or from AWS: none are built in.

The path to a price of AWS is that of the public price list: ``product.attributes`` and
``terms.OnDemand.*.priceDimensions.*.pricePerUnit.USD``. Usage types of hosting end in
``Host:ml.g5.xlarge``. Discounts, Savings Plans and taxes are not part of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsError, AwsReader, region_of
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted
from constructs_triton_core.untrusted.regular_files import csv_text
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.planning.csv_table import (
    Column,
    parse_measured_type,
    parse_text,
    raise_for,
    read_rows,
)
from constructs_triton_tools.planning.measurements import Measurement
from constructs_triton_tools.planning.quantities import Number, exact, read_positive

if TYPE_CHECKING:
    import boto3

#: The AWS Pricing Calculator counts a month as 730 hours.
HOURS_PER_MONTH = 730
_WAY_OUT = "look it up at https://aws.amazon.com/sagemaker/pricing and use --price"
_COLUMNS = (
    Column(("instance_type",), parse_measured_type),
    Column(("price_per_hour", "price"), read_positive),
    Column(("currency",), parse_text, optional=True),
)
_USD = "USD"


class Prices(dict[str, Decimal]):
    """Prices of an instance hour by instance type.

    ``currency`` is empty if it is not known, and ``region`` if the user has given the prices.
    """

    def __init__(self, prices: Mapping[str, Decimal], currency: str = "", region: str = "") -> None:
        super().__init__(prices)
        self.currency = currency
        self.region = region

    @property
    def unit(self) -> str:
        """The currency after a space, to follow a number."""
        return self.currency and f" {self.currency}"

    @property
    def notes(self) -> list[str]:
        """A line about the currency, if no number has it."""
        return [] if self.currency else ["Costs are in the currency of the given prices."]


def read_prices(path: str | PathLike[str]) -> Prices:
    """Read prices per instance hour from a CSV file.

    Columns: ``instance_type``, ``price_per_hour`` (or ``price``), and optionally ``currency``.

    Args:
        path: Path of the CSV file.

    Raises:
        InvalidValueError: a column is missing, a value is not valid, an instance type has two rows,
            or the rows have several currencies. The message lists every bad cell.
    """
    prices: dict[str, Decimal] = {}
    currencies: set[str] = set()
    errors = []
    for row in read_rows(path, _COLUMNS):
        name = row.cells["instance_type"]
        if name in prices:
            errors.append(
                f'{row.place}, column "instance_type": must not repeat, got "{name}" again; '
                "remove one of its rows"
            )
        prices[name] = row.cells["price_per_hour"]
        currencies.add(row.cells.get("currency") or "")
    if len(currencies) > 1:
        names = quoted(sorted(currencies))
        errors.append(
            f'{path}, column "currency": must be the same in all rows, got {names}; convert prices'
        )
    raise_for(errors)
    return Prices(prices, *currencies)


def given_prices(given: Iterable[tuple[str, Decimal]], path: str | None) -> Prices:
    """Return the prices of a file, replaced by those of ``--price``,
    which are in the same currency.
    """
    prices: dict[str, Decimal] = {}
    for name, price in given:
        if prices.setdefault(name, price) != price:
            raise InvalidValueError(
                f'--price: must be given once per instance type, got "{name}" '
                f"with {prices[name]} and {price}; remove one of them"
            )
    listed = read_prices(path) if path else Prices({})
    return Prices({**listed, **prices}, listed.currency)


def price_all(measurements: Iterable[Measurement], prices: Mapping[str, Number]) -> list[Decimal]:
    """Return the price per instance hour of each measurement, from ``prices`` or its own."""
    rows = list(measurements)
    found = {row: prices.get(row.instance_type, row.price_per_hour) for row in rows}
    missing = dict.fromkeys(row.instance_type for row, price in found.items() if price is None)
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise InvalidValueError(
            "prices: must contain the price per hour of every measured instance type, got none for "
            f"{names}; add it (on the command line with --price), "
            "or add a column price_per_hour to the benchmark"
        )
    return [
        exact(f'prices["{row.instance_type}"]', price)
        for row in rows
        if (price := found[row]) is not None
    ]


def fetch_known_prices(session: boto3.Session, types: Iterable[str], not_read: list[str]) -> Prices:
    """Return the prices that the AWS Price List API has, and note the others in ``not_read``."""
    reader = AwsReader(session)
    region = region_of(session)
    found: dict[str, Decimal] = {}
    for name in types:
        try:
            found[name] = price_of(reader, region, name)
        except AwsError as error:
            not_read.append(f"prices: {error}, or use --prices")
            break
        except InvalidValueError:
            not_read.append(f"price of {name}: the price list has none for {region}; use --prices")
    return Prices(found, _USD, region)


def cost_per_hour(session: boto3.Session, instances: Mapping[str, int]) -> str:
    """Return for a question what instances cost, by their types."""
    prices = fetch_known_prices(session, sorted(instances), [])
    if not instances or prices.keys() != instances.keys():
        return "an unknown price"
    costs = (prices[name] * count for name, count in instances.items())
    return f"{sum(costs, Decimal(0)):.2f} {_USD} per hour"


def price_of(reader: AwsReader, region: str, instance_type: str, usage: str = "Host") -> Decimal:
    """Ask the AWS Price List API for the price of an instance hour, in US dollars."""
    filters = [
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": region},
        {"Type": "TERM_MATCH", "Field": "instanceName", "Value": instance_type},
    ]
    request = {"ServiceCode": "AmazonSageMaker", "Filters": filters}
    products = list(reader.members("pricing", "get_products", "PriceList", **request))
    found = _listed_prices(products, usage, instance_type)
    if len(found) != 1:
        shown = ", ".join(map(str, sorted(found))) or "none"
        purpose = "hosting" if usage == "Host" else "a job"
        raise InvalidValueError(
            f"{instance_type}: must have one price for {purpose} in {region}, "
            f"got {shown}; {_WAY_OUT}"
        )
    return found.pop()


def _listed_prices(products: Iterable[str], usage: str, instance_type: str) -> set[Decimal]:
    """The prices of the usage types that end in ``Host:ml.g5.xlarge``;
    the list has others of a type.
    """
    prices: set[Decimal] = set()
    try:
        for text in products:
            product = parse_bounded_json(text)
            usage_type = product["product"]["attributes"].get("usagetype", "")
            if usage_type.endswith(f"{usage}:{instance_type}"):
                prices.update(_hourly_prices(product))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidValueError(
            f"{instance_type}: the AWS Price List API answered in another form than it documents "
            f"({type(error).__name__}); {_WAY_OUT}"
        ) from error
    return prices


def _hourly_prices(product: Mapping[str, Any]) -> Iterator[Decimal]:
    for term in product["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            price = dimension["pricePerUnit"].get("USD", "0")
            if dimension.get("unit", "Hrs").startswith("H") and Decimal(price) > 0:
                yield read_positive("pricePerUnit", price).normalize()


def write_prices(
    path: str | PathLike[str], prices: Mapping[str, Decimal], region: str, today: date
) -> None:
    """Write prices as the CSV file that ``read_prices`` reads, with currency, Region and date."""
    rows = [[name, f"{price:f}", _USD, region, today.isoformat()] for name, price in prices.items()]
    headings = ["instance_type", "price_per_hour", "currency", "region", "fetched"]
    try:
        write_whole(Path(path), csv_text([headings, *rows]))
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be written ({error.strerror}); give another path"
        ) from None
