"""Compares the checker with real programs on models that others wrote: ``make foreign-models``.

Two corpora: the model files of packages of PyPI and npm, with the verdicts of five ONNX Runtimes,
and models in Python for the contract of ``model.py``, with the verdicts of the Triton server.
Prints each disagreement that ``ledger.csv`` does not explain, and exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from typing import TypeVar

from foreign_models import contract_record, contract_server, runtime_record
from foreign_models.comparisons import compare_contract, compare_files
from foreign_models.contract_cases import contract_cases
from foreign_models.packages import fetch, foreign_files
from foreign_models.verdicts import Comparison, ledger, write_ledger

Item = TypeVar("Item")
#: How many files and cases a part has: about a minute.
PART_OF_FILES, PART_OF_CASES = 12, 100
#: A part downloads small files alone.
_LARGEST_OF_A_PART = 8 << 20


def compared(corpora: Sequence[str], onnx_runtime: str, seed: int | None = None) -> Comparison:
    """Compare the checker with the records, on everything or on the part that a seed chooses."""
    pairs = []
    if "contract" in corpora:
        cases = contract_cases()
        pairs += list(compare_contract(_part(cases, PART_OF_CASES, seed), onnx_runtime))
    if "files" in corpora:
        files = foreign_files()
        if seed is not None:
            files = [file for file in files if file.bytes <= _LARGEST_OF_A_PART]
        files = _part(files, PART_OF_FILES, seed)
        fetch(files)
        pairs += list(compare_files(files, onnx_runtime))
    found = [each for _, each in pairs if each is not None]
    return Comparison(found, frozenset(key for key, _ in pairs), onnx_runtime, ledger())


def _part(items: list[Item], count: int, seed: int | None) -> list[Item]:
    if seed is None:
        return items
    return random.Random(seed).sample(items, min(count, len(items)))


def record(corpora: Sequence[str]) -> None:
    """Ask the real programs, and keep what they say: the server only about what was changed."""
    if "contract" in corpora:
        cases = contract_cases()
        verdicts = contract_record.recorded()
        names = set(contract_record.outdated(cases, verdicts))
        verdicts |= contract_server.ask([case for case in cases if case.name in names])
        contract_record.write({case.name: verdicts[case.name] for case in cases})
    if "files" in corpora:
        files = foreign_files()
        fetch(files)
        runtime_record.record(files)


def main() -> int:
    """Compare, or record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    corpora = ["contract", "files"]
    parser.add_argument("corpora", nargs="*", choices=[*corpora, []], help="default: both")
    parser.add_argument("--seed", type=int, help="compare only the part that this number chooses")
    parser.add_argument(
        "--onnx-runtime", default="never", help="pass this option to the checker (default: never)"
    )
    parser.add_argument("--record", action="store_true", help="ask the real programs instead")
    parser.add_argument("--prune", action="store_true", help="remove unneeded lines of the ledger")
    arguments = parser.parse_args()
    chosen = arguments.corpora or corpora
    if arguments.record:
        record(chosen)
        return 0
    comparison = compared(chosen, arguments.onnx_runtime, arguments.seed)
    for line in comparison.report():
        print(line)
    unneeded = comparison.unneeded()
    if arguments.prune:
        write_ledger(set(comparison.lines) - set(unneeded))
        return bool(comparison.unexplained())
    for entry in unneeded:
        print(f"no longer needed (--prune): {entry.kind}: {entry.name} {entry.image}")
    return bool(comparison.unexplained() or unneeded)


if __name__ == "__main__":
    sys.exit(main())
