"""The command of ``make bench``; see ``--help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarking.page import compare, measure, names_of_benchmarks, write_page
from benchmarking.versions import installed_version, this_version


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all, and return 1 if one of them failed."""
    known = names_of_benchmarks()
    parser = argparse.ArgumentParser(prog="benchmarking", description="Run benchmarks and write their page.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks to run (default: all): {known}")
    parser.add_argument("--against", metavar="COMMIT", help="measure this commit too, in turns")
    parser.add_argument("--rounds", type=int, default=2, help="turns of a comparison (default: 2)")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(f"NAMES: must be among {', '.join(known)}, got {', '.join(unknown)}; correct the names")
    now = this_version()
    before = installed_version(options.against) if options.against else None
    failed = []
    for name in options.names or known:
        print(f"{name} ...", flush=True)
        section, reason = compare(name, now, before, options.rounds) if before else measure(name, now)
        write_page({name: section})
        failed += [f"{name}: {reason}"] if reason else []
    print("wrote docs/benchmarks.md" + "".join(f"\nfailed: {each}" for each in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
