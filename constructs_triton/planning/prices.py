"""The price of an instance hour, by instance type: always the user's, never built in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from os import PathLike

from constructs_triton.errors import InvalidValueError
from constructs_triton.planning.csv_table import Column, Row, parse_instance_type, raise_for, read_rows
from constructs_triton.planning.measurements import Measurement
from constructs_triton.planning.quantities import Number, exact, read_positive

__all__ = ["price_all", "read_prices"]

_COLUMNS = (
    Column(("instance_type",), parse_instance_type),
    Column(("price_per_hour", "price"), read_positive),
)


def read_prices(path: str | PathLike[str]) -> dict[str, Decimal]:
    """Prices per instance hour from a CSV file with the columns ``instance_type`` and ``price_per_hour``.

    Raises ``InvalidValueError`` with all bad cells, and for an instance type that has two rows.
    """
    prices: dict[str, Decimal] = {}
    errors = []
    for row in read_rows(path, _COLUMNS):
        name = row.cells["instance_type"]
        if name in prices:
            errors.append(_second(row, name))
        prices[name] = row.cells["price_per_hour"]
    raise_for(errors)
    return prices


def price_all(measurements: Iterable[Measurement], prices: Mapping[str, Number]) -> list[Decimal]:
    """The price per instance hour of each measurement: of the table, or else of the measurement itself.

    Raises ``InvalidValueError`` that names every instance type without one.
    """
    rows = list(measurements)
    found = {row: prices.get(row.instance_type, row.price_per_hour) for row in rows}
    missing = dict.fromkeys(row.instance_type for row, price in found.items() if price is None)
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise InvalidValueError(
            f"prices: must hold the price per hour of every instance type measured, got none for {names}; "
            "add it, or a column price_per_hour to the benchmark"
        )
    return [
        exact(f'prices["{row.instance_type}"]', price) for row in rows if (price := found[row]) is not None
    ]


def _second(row: Row, name: str) -> str:
    return (
        f'{row.place}, column "instance_type": must not repeat, got "{name}" again; leave out one of its rows'
    )
