"""Numbers as the exact decimals that their authors wrote, within bounds."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from constructs_triton_core.errors import InvalidValueError

Number: TypeAlias = int | float | Decimal

# No exponent, separator or unit: "1,335" can mean 1335 or 1.335.
_PLAIN = re.compile(r"-?(\d+(\.\d*)?|\.\d+)", re.ASCII)
_LONGEST = 40


class Bounds:
    """The minimum and the maximum, both allowed, as messages show them;
    ``fix`` ends the message.
    """

    def __init__(self, minimum: str, maximum: str, fix: str) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.fix = fix

    def contain(self, value: Decimal) -> bool:
        """Whether the value is in the range; infinity and NaN are not."""
        return value.is_finite() and Decimal(self.minimum) <= value <= Decimal(self.maximum)


# Both are far beyond any endpoint. They keep a typing error from becoming a huge computation.
POSITIVE = Bounds("0.000001", "1000000000000", "give a positive number")


def exact(property: str, value: Number, bounds: Bounds = POSITIVE) -> Decimal:
    """Return the number as the decimal that it is written as.

    The float ``0.7364`` becomes exactly 0.7364. ``property`` is the name for messages.
    """
    try:
        # str() of a float is the shortest decimal that gives the same float, which is what its
        # author typed.
        number = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation:
        raise InvalidValueError(
            f'{property}: must be a number, got "{value}"; {bounds.fix}'
        ) from None
    if not bounds.contain(number):
        raise InvalidValueError(
            f"{property}: must be from {bounds.minimum} to {bounds.maximum}, "
            f"got {value}; {bounds.fix}"
        )
    return number


def read_decimal(property: str, text: str) -> Decimal:
    """Read a number in plain digits, such as ``1335`` or ``0.94``, of any size."""
    if _PLAIN.fullmatch(text) is None or len(text) > _LONGEST:
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise InvalidValueError(
            f'{property}: must be a number, got "{shown}"; write digits and a decimal point, like '
            '"1335" or "0.94", without unit or thousands separator'
        )
    return Decimal(text)


def read_positive(property: str, text: str) -> Decimal:
    """Read a number as :func:`read_decimal` does; it must be above zero."""
    return exact(property, read_decimal(property, text))
