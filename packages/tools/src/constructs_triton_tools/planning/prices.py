"""Prices of an instance hour by instance type. You provide them: none are built in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from os import PathLike

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning.csv_table import Column, Row, parse_measured_type, raise_for, read_rows
from constructs_triton_tools.planning.measurements import Measurement
from constructs_triton_tools.planning.quantities import Number, exact, read_positive

__all__ = ["price_all", "read_prices"]

_COLUMNS = (
    Column(("instance_type",), parse_measured_type),
    Column(("price_per_hour", "price"), read_positive),
)


def read_prices(path: str | PathLike[str]) -> dict[str, Decimal]:
    """Read prices per instance hour from a CSV file.

    Columns: ``instance_type`` and ``price_per_hour`` (or ``price``).

    Args:
        path: Path of the CSV file.

    Raises:
        InvalidValueError: a column is missing, a value is not valid, or an instance type has two rows. The
            message lists every bad cell.
    """
    prices: dict[str, Decimal] = {}
    errors = []
    for row in read_rows(path, _COLUMNS):
        name = row.cells["instance_type"]
        if name in prices:
            errors.append(_repeated(row, name))
        prices[name] = row.cells["price_per_hour"]
    raise_for(errors)
    return prices


def price_all(measurements: Iterable[Measurement], prices: Mapping[str, Number]) -> list[Decimal]:
    """Return the price per instance hour of each measurement, from ``prices`` or its own.

    Raises:
        InvalidValueError: instance types have no price; the message lists them.
    """
    rows = list(measurements)
    found = {row: prices.get(row.instance_type, row.price_per_hour) for row in rows}
    missing = dict.fromkeys(row.instance_type for row, price in found.items() if price is None)
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise InvalidValueError(
            f"prices: must contain the price per hour of every measured instance type, got none for {names}; "
            "add it (on the command line with --price), or add a column price_per_hour to the benchmark"
        )
    return [
        exact(f'prices["{row.instance_type}"]', price) for row in rows if (price := found[row]) is not None
    ]


def _repeated(row: Row, name: str) -> str:
    return f'{row.place}, column "instance_type": must not repeat, got "{name}" again; remove one of its rows'
