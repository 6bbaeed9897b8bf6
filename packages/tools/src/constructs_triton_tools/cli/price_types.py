"""Reads exact decimals and prices, as argparse's ``type``."""

from __future__ import annotations

from decimal import Decimal

from constructs_triton_core.program.argument_types import argument_type, pair_argument
from constructs_triton_tools.planning.csv_table import parse_measured_type
from constructs_triton_tools.planning.quantities import read_decimal, read_positive

__all__ = ["decimal_argument", "price_argument"]


def _price(_place: str, text: str) -> tuple[str, Decimal]:
    name, price = pair_argument("TYPE=PRICE", "ml.g5.xlarge=1.41")(text)
    return parse_measured_type("instance type", name), read_positive(name, price)


#: Reads a number exactly.
decimal_argument = argument_type(read_decimal)
#: Reads ``TYPE=PRICE``.
price_argument = argument_type(_price)
