"""Tests mutants two at a time and writes each result as a line of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .coverage_map import CoverageMap
from .runner import Run, Tree
from .sample import PACKAGES, Mutant
from .score import read_results

__all__ = ["Selection", "Session", "select"]

#: A mutant may take this many times longer than its tests took, plus a start-up time.
_PATIENCE, _STARTUP_SECONDS = 4, 45


@dataclass(frozen=True)
class Selection:
    """The tests to run against one mutant."""

    tests: list[str]
    seconds: float
    left_out: int
    """How many tests execute the line too, but would take too long."""


def select(known: CoverageMap, mutant: Mutant, budget_seconds: float) -> Selection:
    """Choose the tests of a mutant: its mirror in ``tests/`` first, then the fastest files."""
    names = known.tests_of(mutant)
    names = {name for name in names if not known.tests[name]["e2e"]} or names
    by_file: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: float(known.tests[name]["seconds"])):
        by_file.setdefault(name.split("::")[0], []).append(name)
    mirror = _mirror(mutant.path)
    stem = Path(mutant.path).stem.strip("_")
    files = sorted(
        by_file, key=lambda f: (mirror not in f, stem not in f, known.seconds(by_file[f]) / len(by_file[f]))
    )
    chosen: list[str] = []
    left_out, seconds = 0, 0.0
    for file in files:
        shared = known.fixtures.get(file, 0.0)
        for name in by_file[file]:
            cost = shared + float(known.tests[name]["seconds"])
            if seconds + cost > budget_seconds:
                left_out += 1
                continue
            chosen.append(name)
            seconds, shared = seconds + cost, 0.0
    return Selection(chosen, seconds, left_out)


def _mirror(path: str) -> str:
    """Return the part of ``tests/unit`` that a module's tests are in."""
    (package,) = (each for each in PACKAGES if path.startswith(f"{each}/"))
    return (Path(PACKAGES[package]) / Path(path).relative_to(package)).parent.as_posix()


@dataclass
class Session:
    """Runs mutants and appends their results to a file."""

    project: Path
    known: CoverageMap
    trees: list[Tree]
    results: Path
    budget_seconds: float

    def run(self, mutants: list[Mutant]) -> None:
        """Test every mutant; those without tests are decided immediately."""
        queue, running = iter(mutants), dict[int, tuple[Mutant, Selection, Run]]()
        finished, started = 0, time.monotonic()
        for slot in range(len(self.trees)):
            self._start_next(queue, running, slot)
        while running:
            time.sleep(0.02)
            for slot, (mutant, selection, run) in list(running.items()):
                if (outcome := run.poll()) is None:
                    continue
                self.trees[slot].write(mutant.path, (self.project / mutant.path).read_bytes())
                self._record(mutant, _status(outcome, selection), selection, outcome)
                finished += 1
                minutes = (time.monotonic() - started) / 60
                print(f"  {finished} run in {minutes:.1f} min, {len(mutants)} in all", flush=True)
                del running[slot]
                self._start_next(queue, running, slot)

    def confirm(self) -> None:
        """Run every test that killed a mutant without a mutant: those that fail again prove nothing."""
        killers: dict[str, list[dict[str, Any]]] = {}
        for result in read_results(self.results).values():
            if result["status"] == "killed" and not result.get("confirmed"):
                killers.setdefault((result["failed"] or [result["first_test"]])[0], []).append(result)
        if not killers:
            return
        print(f"running the {len(killers)} tests that failed once more, without a mutant", flush=True)
        run = self.trees[0].start(sorted(killers), 1200)
        while (outcome := run.poll()) is None:
            time.sleep(0.1)
        ran = outcome["exit_code"] in (0, 1)
        for test, results in killers.items():
            is_sound = ran and test not in outcome["failed"]
            for result in results:
                status = "killed" if is_sound else "undecided"
                self._append({**result, "confirmed": is_sound, "status": status})
            if not is_sound:
                print(f"fails without a mutant too: {test}\n{outcome['output'][-1000:]}", flush=True)

    def _start_next(
        self, queue: Iterator[Mutant], running: dict[int, tuple[Mutant, Selection, Run]], slot: int
    ) -> None:
        for mutant in queue:
            selection = select(self.known, mutant, self.budget_seconds)
            if selection.tests:
                self.trees[slot].write(mutant.path, mutant.mutated(self.project))
                timeout = _STARTUP_SECONDS + _PATIENCE * selection.seconds
                running[slot] = (mutant, selection, self.trees[slot].start(selection.tests, timeout, "-x"))
                return
            status = "undecided" if selection.left_out else "not covered"
            self._record(mutant, status, selection, {})

    def _record(self, mutant: Mutant, status: str, selection: Selection, outcome: dict[str, Any]) -> None:
        line = {
            "id": mutant.id,
            "status": status,
            "path": mutant.path,
            "line": mutant.mutation.start[0],
            "description": mutant.mutation.description,
            "tests": len(selection.tests),
            "left_out": selection.left_out,
            "first_test": selection.tests[0] if selection.tests else "",
            **outcome,
        }
        if status == "survived":
            line.pop("output", None)
        self._append(line)
        took = f" {outcome['seconds']} s," if outcome else ""
        print(
            f"{status:12}{mutant},{took} {len(selection.tests)} tests {' '.join(outcome.get('failed', []))}",
            flush=True,
        )

    def _append(self, line: dict[str, Any]) -> None:
        with self.results.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _status(outcome: dict[str, Any], selection: Selection) -> str:
    if outcome["exit_code"] == 0:
        return "undecided" if selection.left_out else "survived"
    if outcome["exit_code"] == "timeout":
        return "timed out"
    # Without a failure, pytest found none of the tests or did not get to run, or the process died.
    return "killed" if outcome["failed"] else "undecided"
