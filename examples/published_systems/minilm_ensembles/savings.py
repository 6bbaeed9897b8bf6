"""The article's saving: `python savings.py [--price 1.505] [--ensembles 2] [--instances 1]`.

Compares an endpoint for each ensemble with one multi-model endpoint for all. 1.505 USD is the price
per hour of ml.g4dn.4xlarge for hosting in us-east-1; `constructs-triton cost prices` gets that of
other types.
"""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal

HOURS_PER_YEAR = 24 * 365


def yearly_cost(price_per_hour: Decimal, instances: int) -> Decimal:
    """Return what instances that are always in service cost in a year."""
    return price_per_hour * instances * HOURS_PER_YEAR


def main() -> int:
    """Read the command line and print both costs and the saving."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--price", type=Decimal, default=Decimal("1.505"), help="USD an hour (default: 1.505)"
    )
    parser.add_argument(
        "--ensembles", type=int, default=2, help="ensembles that share it (default: 2)"
    )
    parser.add_argument(
        "--instances", type=int, default=1, help="instances of the endpoint (default: 1)"
    )
    arguments = parser.parse_args()
    shared = yearly_cost(arguments.price, arguments.instances)
    separate = shared * arguments.ensembles
    saved = separate - shared
    sys.stdout.write(
        f"an endpoint for each ensemble  {separate:12,.2f} USD a year\n"
        f"one multi-model endpoint       {shared:12,.2f} USD a year\n"
        f"saved                          {saved:12,.2f} USD a year, {saved / separate:.0%}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
