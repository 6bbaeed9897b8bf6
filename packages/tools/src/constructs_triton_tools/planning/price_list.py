"""Prices of hosting instances from the AWS Price List API.

The path to a price is that of the public price list: ``product.attributes`` and
``terms.OnDemand.*.priceDimensions.*.pricePerUnit.USD``. Usage types of hosting end in ``Host:ml.g5.xlarge``.
Discounts, Savings Plans and taxes are not part of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.whole_files import csv_text, write_whole
from constructs_triton_tools.planning.quantities import read_positive

__all__ = ["PRICE_LIST_REGION", "fetch_job_price", "fetch_prices", "write_prices"]

#: One of the three Regions in which the API answers; each knows the prices of all Regions.
PRICE_LIST_REGION = "us-east-1"
_SERVICE = "AmazonSageMaker"
_WAY_OUT = "look it up at https://aws.amazon.com/sagemaker/pricing and use --price"


def fetch_prices(client: Any, region: str, instance_types: Iterable[str]) -> dict[str, Decimal]:
    """Ask for the price of an instance hour, in US dollars, of each instance type.

    ``client`` is boto3's client of the service ``pricing`` in ``us-east-1``.

    Raises:
        InvalidValueError: the list has no price for a type in the Region, or several.
    """
    return {name: _find(client, region, name) for name in instance_types}


def fetch_job_price(client: Any, region: str, instance_type: str, kind: str) -> Decimal | None:
    """Ask for the price of an instance hour of a processing or training job; ``None`` if it has not one.

    ``client`` is that of :func:`fetch_prices`.

    Raises:
        InvalidValueError: the answer has another form.
    """
    usage = {"processing": "Processing", "training": "Train"}[kind]
    found = _prices(_products(client, region, instance_type), usage, instance_type)
    return found.pop() if len(found) == 1 else None


def _prices(products: Iterable[Mapping[str, Any]], usage: str, instance_type: str) -> set[Decimal]:
    """The prices of the usage types that end in ``Host:ml.g5.xlarge``."""
    try:
        return {
            price
            for product in products
            if product["product"]["attributes"].get("usagetype", "").endswith(f"{usage}:{instance_type}")
            for price in _hourly_prices(product)
        }
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidValueError(
            f"{instance_type}: the AWS Price List API answered in another form than it documents "
            f"({type(error).__name__}); {_WAY_OUT}"
        ) from error


def _products(client: Any, region: str, instance_type: str) -> Iterator[Mapping[str, Any]]:
    filters = [
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": region},
        {"Type": "TERM_MATCH", "Field": "instanceName", "Value": instance_type},
    ]
    pages = client.get_paginator("get_products").paginate(ServiceCode=_SERVICE, Filters=filters)
    for page in pages:
        for text in page["PriceList"]:
            yield parse_bounded_json(text)


def _find(client: Any, region: str, instance_type: str) -> Decimal:
    """The only price of hosting. A type also has prices of notebooks, training and processing."""
    found = _prices(_products(client, region, instance_type), "Host", instance_type)
    if len(found) != 1:
        shown = ", ".join(map(str, sorted(found))) or "none"
        raise InvalidValueError(
            f"{instance_type}: must have one price for hosting in {region}, got {shown}; {_WAY_OUT}"
        )
    return found.pop()


def _hourly_prices(product: Mapping[str, Any]) -> Iterator[Decimal]:
    for term in product["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            price = dimension["pricePerUnit"].get("USD", "0")
            if dimension.get("unit", "Hrs").startswith("H") and Decimal(price) > 0:
                yield read_positive("pricePerUnit", price).normalize()


def write_prices(path: str | PathLike[str], prices: Mapping[str, Decimal], region: str, today: date) -> None:
    """Write prices as the CSV file that ``read_prices`` reads, with currency, Region and date.

    Raises:
        InvalidValueError: the file cannot be written.
    """
    rows = [[name, f"{price:f}", "USD", region, today.isoformat()] for name, price in prices.items()]
    headings = ["instance_type", "price_per_hour", "currency", "region", "fetched"]
    try:
        write_whole(Path(path), csv_text([headings, *rows]))
    except OSError as error:
        raise InvalidValueError(f"{path}: cannot be written ({error.strerror}); give another path") from None
