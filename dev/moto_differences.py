"""Write the table of what the rehearsal replaces in moto.

    python dev/moto_differences.py

The table is in the README.md of the room that knows moto. A test compares it with the declarations
and with the installed moto.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from cdk_rehearse import moto_account
from cdk_rehearse.moto_account.differences import Difference

PAGE = Path(moto_account.__path__[0]) / "README.md"
BEGIN = "<!-- differences -->\n"
END = "<!-- end -->\n"
HEADER = "| module | AWS | replaced in moto | since | code |\n|---|---|---|---|---|\n"


def differences() -> Iterator[tuple[str, Difference]]:
    """Yield each difference with the module of the room that declares it."""
    for module in pkgutil.iter_modules(moto_account.__path__):
        members = vars(importlib.import_module(f"{moto_account.__name__}.{module.name}"))
        for member in members.values():
            if isinstance(member, Difference):
                yield module.name, member


def table() -> str:
    """Return the table of all differences."""
    rows = [
        f"| `{module}` | {found.aws} | `{found.member}` | {found.since} | {found.code()} |\n"
        for module, found in differences()
    ]
    return HEADER + "".join(rows)


def page() -> str:
    """Return the page with today's table."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
