"""Numbers as the exact decimals that their authors wrote."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from constructs_triton.errors import InvalidValueError

__all__ = ["Bounds", "Number", "exact", "read_decimal", "read_positive"]

Number: TypeAlias = int | float | Decimal

# No exponent, separator or unit: "1,335" is 1335 to one reader and 1.335 to the next.
_PLAIN = re.compile(r"-?(\d+(\.\d*)?|\.\d+)", re.ASCII)
_LONGEST = 40


class Bounds:
    """The least and the greatest value, both allowed, as they are shown; ``mend`` ends the message."""

    def __init__(self, least: str, greatest: str, mend: str) -> None:
        self.least, self.greatest, self.mend = least, greatest, mend

    def hold(self, value: Decimal) -> bool:
        """Whether the value lies within; an infinity or a NaN never does."""
        return value.is_finite() and Decimal(self.least) <= value <= Decimal(self.greatest)


# Both ends are far beyond any endpoint; they keep a slip of the keyboard from becoming a huge computation.
POSITIVE = Bounds("0.000001", "1000000000000", "give a positive number")


def exact(property: str, value: Number, bounds: Bounds = POSITIVE) -> Decimal:
    """The number as the decimal that it is written as: the float ``0.7364`` becomes exactly 0.7364.

    Raises ``InvalidValueError`` that names ``property`` for what is no number or out of bounds.
    """
    try:
        # str() of a float is the shortest decimal that reads back as it, which is what its author typed.
        number = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation:
        raise InvalidValueError(f'{property}: must be a number, got "{value}"; {bounds.mend}') from None
    if not bounds.hold(number):
        raise InvalidValueError(
            f"{property}: must be from {bounds.least} to {bounds.greatest}, got {value}; {bounds.mend}"
        )
    return number


def read_decimal(property: str, text: str) -> Decimal:
    """The number that a text holds in plain digits, like ``1335`` or ``0.94``, of any size.

    Raises ``InvalidValueError`` that names ``property`` for any other text.
    """
    if _PLAIN.fullmatch(text) is None or len(text) > _LONGEST:
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise InvalidValueError(
            f'{property}: must be a number, got "{shown}"; '
            'write digits and a decimal point, like "1335" or "0.94", without unit or thousands separator'
        )
    return Decimal(text)


def read_positive(property: str, text: str) -> Decimal:
    """Like :func:`read_decimal`, for a number above zero."""
    return exact(property, read_decimal(property, text))
