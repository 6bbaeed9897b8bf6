"""Reads results and prints the score of each package."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["print_score", "read_equivalents", "read_results"]

_KILLED, _ALIVE = ("killed", "timed out"), ("survived", "not covered")


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """Read the last result of each mutant."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["id"]: line for line in lines}


def read_equivalents(path: Path) -> set[str]:
    """Read the ids of mutants that change nothing a test could observe.

    Raises:
        SystemExit: a line does not give a reason.
    """
    found = set()
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            identifier, _, reason = line.partition("  ")
            if not reason.strip():
                raise SystemExit(f"{path.name}: {identifier} has no reason; write it after two spaces")
            found.add(identifier)
    return found


def print_score(results: list[dict[str, Any]]) -> None:
    """Print what is alive, then a table of killed, alive and undecided mutants by package."""
    for result in sorted(results, key=lambda r: (r["path"], r["line"])):
        if result["status"] not in _KILLED:
            place = f"{result['path']}:{result['line']}"
            print(f"{result['status']:12}{result['id']} {place} {result['description']}")
    packages: dict[str, Counter[str]] = {"all": Counter()}
    for result in results:
        for package in ("all", _package(result["path"])):
            packages.setdefault(package, Counter())[result["status"]] += 1
    print(f"\n{'package':20}{'killed':>8}{'alive':>8}{'undecided':>11}{'score':>8}")
    for package, counts in sorted(packages.items(), key=lambda entry: (entry[0] == "all", entry[0])):
        killed, alive = sum(counts[s] for s in _KILLED), sum(counts[s] for s in _ALIVE)
        score = f"{100 * killed / (killed + alive):.0f} %" if killed + alive else "-"
        print(f"{package:20}{killed:8}{alive:8}{counts['undecided']:11}{score:>8}")


def _package(path: str) -> str:
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else "(top)"
