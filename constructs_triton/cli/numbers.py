"""Numbers in arguments: exact decimals, and prices of instance types."""

from __future__ import annotations

import argparse
from decimal import Decimal

from constructs_triton.errors import InvalidValueError
from constructs_triton.planning.csv_table import parse_measured_type
from constructs_triton.planning.quantities import read_decimal, read_positive

__all__ = ["decimal_argument", "price_argument"]


def decimal_argument(text: str) -> Decimal:
    """Read a number exactly, as argparse's ``type``."""
    try:
        return read_decimal("", text)
    except InvalidValueError as error:
        # argparse puts the option's name before the message.
        raise argparse.ArgumentTypeError(str(error).removeprefix(": ")) from None


def price_argument(text: str) -> tuple[str, Decimal]:
    """Read ``TYPE=PRICE``, as argparse's ``type``."""
    name, equals, price = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(
            f'must have the form TYPE=PRICE, got "{text}"; write for example ml.g5.xlarge=1.41'
        )
    try:
        return parse_measured_type("instance type", name), read_positive(name, price)
    except InvalidValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
