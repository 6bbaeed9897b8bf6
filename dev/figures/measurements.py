"""What benchmarks measure: some of them now, the others as
``dev/project/benchmarks.md`` has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarking.__main__ import LIMITS
from benchmarking.figures import read_limits
from benchmarking.page import OUTPUT
from benchmarking.versions import this_version

from figures import PROJECT
from figures.table import Row

#: The benchmarks that run now. They take seconds, and depend little on other programs that run.
SHORT = ("counts", "starts")
#: Commands, and where the project promises their time.
PROMISES = {
    "make test": ("Makefile", r"^test:.*, (in under [\w ]+ minutes)"),
    ".ci/run": ("dev/project/maintaining.md", r"CI runs both, (in under [\w ]+ minutes)"),
}
_NOT_MEASURED = "not measured here"


def starts() -> Iterator[Row]:
    """What commands and an app load, call and take, in seconds of the processor."""
    for run in read_limits(LIMITS).runs:
        if run.script in SHORT:
            outcome = this_version().run(run.script, run.arguments, is_shared=run.is_shared)
            for figure in run.figures:
                value = next(iter(figure.find(outcome.output)), None)
                yield Row(figure.name, value, figure.limit, str(LIMITS), outcome.reason)


def benchmarks() -> Iterator[Row]:
    """The recorded figures that have a limit, and the times of the tests."""
    recorded = read_page(OUTPUT.read_text(encoding="utf-8"))
    for run in read_limits(LIMITS).runs:
        for figure in run.figures:
            if figure.limit and run.script not in SHORT:
                cell = re.match(r"[\d,.]+", recorded.get(figure.name, ""))
                value, note = (
                    (float(cell[0].replace(",", "")), "recorded") if cell else (None, _NOT_MEASURED)
                )
                yield Row(figure.name, value, figure.limit, str(LIMITS), note, is_goal=True)
    for command, (place, pattern) in PROMISES.items():
        promise = re.search(pattern, (PROJECT / place).read_text(encoding="utf-8"), re.MULTILINE)
        note = recorded.get(f"`{command}`", _NOT_MEASURED)
        yield Row(f"time of `{command}`", None, promise[1] if promise else "", place, note)


def read_page(text: str) -> dict[str, str]:
    """Return the last value that a page of benchmarks has of each figure: the cell below "now"."""
    found, now = {}, -1
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "figure" and "now" in cells:
            now = cells.index("now")
        elif line.startswith("| ") and len(cells) > now > 0:
            found[cells[0]] = cells[now]
    return found
