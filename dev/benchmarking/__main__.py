"""The command of ``make bench``; see ``--help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarking.comparison import FIX, compare, load, table
from benchmarking.figures import Limits, LimitsError, read_limits
from benchmarking.page import measure, names_of_benchmarks, write_comparison, write_page
from benchmarking.versions import PROJECT, UnusableCommitError, installed_version, this_version

LIMITS = PROJECT / "benchmarks" / "limits.toml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all.

    Exit codes: 1 if a figure is slower, 2 if nothing can be compared.
    """
    known = names_of_benchmarks()
    parser = argparse.ArgumentParser(
        prog="benchmarking", description="Run benchmarks and write their page."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run (default: all): {known}"
    )
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare short figures with this commit, in turns"
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds of a comparison (default: 7)")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(
            f"NAMES: must be among {', '.join(known)}, got {', '.join(unknown)}; correct the names"
        )
    if options.rounds < 1:
        parser.error(f"--rounds: must be at least 1, got {options.rounds}")
    try:
        limits = read_limits(LIMITS)
        if options.against:
            return against(limits, options.against, options.rounds, options.names)
    except (LimitsError, UnusableCommitError) as error:
        print(error, file=sys.stderr)
        return 2
    return alone(limits, options.names or known)


def alone(limits: Limits, names: Sequence[str]) -> int:
    """Run benchmarks as they are, and write what they print."""
    failed = []
    for name in names:
        print(f"{name} ...", flush=True)
        section, reason = measure(name, this_version(), limits)
        write_page({name: section})
        failed += [f"{name}: {reason}"] if reason else []
    print("wrote dev/project/benchmarks.md" + "".join(f"\nfailed: {each}" for each in failed))
    return 1 if failed else 0


def against(limits: Limits, commit: str, rounds: int, names: Sequence[str]) -> int:
    """Compare short figures with those of an earlier commit.

    Without ``names``, write the table of all.
    """
    before, at_first = installed_version(commit), load()
    print(at_first, flush=True)
    found = list(compare(limits, this_version(), before, rounds, names or names_of_benchmarks()))
    if not found:
        print("NAMES: have no figure that is compared; see benchmarks/limits.toml", file=sys.stderr)
        return 2
    at_last = load()
    print(*table(found, before.name), at_last, sep="\n")
    if not names:
        write_comparison(found, before.name, rounds, f"{at_first}; at the end {at_last}")
        print("wrote dev/project/benchmarks.md")
    problems = [problem for each in found if (problem := each.problem(before.name))]
    summary = f"{len(problems)} of {len(found)} figures fail against {before.name}"
    print(*problems, *([FIX] if problems else []), summary, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
