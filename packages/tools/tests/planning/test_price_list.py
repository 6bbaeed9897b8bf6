"""Prices from the AWS Price List API."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import boto3
import pytest
from botocore.stub import Stubber

from constructs_triton_core.aws_reader import AwsReader
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import read_prices
from constructs_triton_tools.planning.prices import price_of, write_prices

FILTERS = [
    {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-west-1"},
    {"Type": "TERM_MATCH", "Field": "instanceName", "Value": "ml.g5.xlarge"},
]


def product(usage_type: str, *prices: str, unit: str = "Hrs") -> str:
    """A product as the API returns it: a string of JSON."""
    dimensions = {
        str(n): {"unit": unit, "pricePerUnit": {"USD": price}} for n, price in enumerate(prices)
    }
    attributes = {
        "usagetype": usage_type,
        "regionCode": "eu-west-1",
        "instanceName": "ml.g5.xlarge",
    }
    terms = {"OnDemand": {"A.B": {"priceDimensions": dimensions}}} if prices else {}
    return json.dumps({"product": {"attributes": attributes}, "terms": terms})


HOSTING = "EU-Host:ml.g5.xlarge"


def fetch(*pages: list[str]) -> Decimal:
    reader = AwsReader(boto3.Session("a", "b", region_name="eu-west-1"))
    client = reader.client("pricing")
    assert client.meta.region_name == "us-east-1"
    stub = Stubber(client)
    for number, page in enumerate(pages, 1):
        token = {"NextToken": f"page{number}"} if number < len(pages) else {}
        previous = {"NextToken": f"page{number - 1}"} if number > 1 else {}
        expected = {"ServiceCode": "AmazonSageMaker", "Filters": FILTERS, **previous}
        stub.add_response("get_products", {"PriceList": page, **token}, expected)
    with stub:
        return price_of(reader, "eu-west-1", "ml.g5.xlarge")


def test_price_of_hosting_is_found_among_others() -> None:
    """Notebooks, training and hosting of other types have other prices; free tiers cost nothing."""
    others = [product("EU-Train:ml.g5.xlarge", "2"), product("EU-Host:ml.g5.xlarge.x", "3")]
    found = fetch(others, [product(HOSTING, "1.5700000000", "0.0000000000"), product(HOSTING)])
    assert found == Decimal("1.57")


ONE = r"must have one price for hosting .*, got"
FORM = r"^ml\.g5\.xlarge: the AWS Price List API"


@pytest.mark.parametrize(
    ("products", "message"),
    [
        ([], f"{ONE} none"),
        (
            [product(HOSTING, "1.57"), product("EUW2-Host:ml.g5.xlarge", "1.63")],
            rf"{ONE} 1\.57, 1\.63",
        ),
        ([product(HOSTING, "1.57", unit="GB")], f"{ONE} none"),
        *(([each], FORM) for each in ("", "[]", "{}", '{"product": {"attributes": null}}')),
        *(([product(HOSTING, price)], FORM) for price in ("1.5x", "1e999")),
    ],
)
def test_doubtful_price_is_refused(products: list[str], message: str) -> None:
    """No price, two different ones, or an answer of another form:
    the error names the alternative.
    """
    with pytest.raises(InvalidValueError, match=f"{message}.*--price"):
        fetch(products)


def test_file_is_dated_and_plan_reads_it(tmp_path: Path) -> None:
    """Currency, Region and date are in the file."""
    path = tmp_path / "prices.csv"
    write_prices(path, {"ml.g5.xlarge": Decimal("1.57")}, "eu-west-1", date(2026, 1, 5))
    assert read_prices(path) == {"ml.g5.xlarge": Decimal("1.57")}
    assert path.read_text().splitlines()[1] == "ml.g5.xlarge,1.57,USD,eu-west-1,2026-01-05"
    with pytest.raises(InvalidValueError, match=r"cannot be written"):
        write_prices(tmp_path / "absent" / "p.csv", {}, "eu-west-1", date(2026, 1, 5))
