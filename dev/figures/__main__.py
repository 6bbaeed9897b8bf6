"""The command of ``make figures``; see ``--help``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from tempfile import TemporaryDirectory

from figures import measurements, sizes, thermometers, verdicts
from figures.failures import failures
from figures.findings import findings
from figures.table import LEGEND, Row

Group = Callable[[], Iterable[Row]]
GROUPS: Mapping[str, Group] = {
    "code": sizes.code,
    "density": thermometers.density,
    "installed": sizes.installed,
    "words": sizes.words,
    "starts": measurements.starts,
    "benchmarks": measurements.benchmarks,
    "agreement": verdicts.agreement,
    "scores": verdicts.scores,
    "findings": findings,
    "failures": failures,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures. Exit code 1 if a limit is missed."""
    parser = argparse.ArgumentParser(
        prog="figures", description="Print each figure beside its limit."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"groups (default: all): {[*GROUPS]}"
    )
    parser.add_argument(
        "--against", metavar="COMMIT", default="", help="compare its findings with today's"
    )
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(GROUPS)):
        parser.error(
            f"NAMES: must be among {', '.join(GROUPS)}, got {', '.join(unknown)}; correct the names"
        )
    groups: dict[str, Group] = {**GROUPS}
    if options.against:
        groups["findings"] = partial(findings, options.against)
    # Nothing that an earlier run has cached counts.
    with TemporaryDirectory() as cache:
        os.environ["CONSTRUCTS_TRITON_CACHE_DIR"] = cache
        return show(
            {name: rows for name, rows in groups.items() if name in (options.names or groups)}
        )


def show(groups: Mapping[str, Group]) -> int:
    """Print groups as they are calculated, and return 1 if a limit is missed."""
    shown: list[Row] = []
    for name, rows in groups.items():
        print(f"\n{name}", flush=True)
        for row in rows():
            print(row, flush=True)
            shown.append(row)
    missed, goals = (sum(row.mark == mark for row in shown) for mark in "!~")
    unknown = sum(row.value is None for row in shown)
    print(LEGEND)
    print(
        f"{len(shown)} figures: {missed} miss their limit, "
        f"{goals} their goal, {unknown} were not measured"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
