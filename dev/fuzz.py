"""Runs the mutation fuzzers and the property tests with fresh seeds: ``make fuzz SECONDS=600``.

Half of the time is for each. An input that fails is saved below tests/fuzz/cases; ``make test``
reads it.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT / "tests" / "fuzz"))


def main() -> int:
    """Return 1 if an input failed."""
    from fuzz_targets import TARGETS  # noqa: PLC0415 - after the path above
    from mutation_fuzzer import fuzz  # noqa: PLC0415 - likewise

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, help="how long to run")
    seconds = parser.parse_args().seconds
    failed = False
    for target in TARGETS:
        seed = secrets.randbits(32)
        try:
            count = fuzz(target, seed, seconds=seconds / 2 / len(TARGETS))
            print(f"{target.name}: {count} inputs, seed {seed}", flush=True)
        except AssertionError as error:
            failed = True
            print(f"FAILED {error}", flush=True)
    return int(not _property_tests_pass(seconds / 2) or failed)


def _property_tests_pass(seconds: float) -> bool:
    """Repeat the property tests, each time with another seed, until the time is over."""
    deadline = time.monotonic() + seconds
    runs = 0
    while time.monotonic() < deadline:
        seed = secrets.randbits(32)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        folders = sorted(PROJECT.glob("packages/*/tests/property"))
        done = subprocess.run(
            [*command, *folders, f"--hypothesis-seed={seed}"], cwd=PROJECT, check=False
        )
        if done.returncode:
            print(f"FAILED property tests, seed {seed}")
            return False
        runs += 1
    print(f"property tests: {runs} runs")
    return True


if __name__ == "__main__":
    sys.exit(main())
