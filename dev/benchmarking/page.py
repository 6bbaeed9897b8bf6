"""Writes ``docs/benchmarks.md``: what each benchmark prints, and a table of its figures before and now.

The page has the machine, its load and the versions too. The numbers of other pages and of the README come
from this page.
"""

from __future__ import annotations

import ast
import os
import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from benchmarking.figures import RUNS, Figure, Run, cell
from benchmarking.versions import PROJECT, Outcome, Version

OUTPUT = PROJECT / "docs" / "benchmarks.md"
PACKAGES = ("aws-cdk-lib", "numpy", "tritonclient", "isal", "blake3", "onnx", "onnxruntime", "aiohttp")
HEAD = """# Benchmarks

`make bench` wrote this page. Each benchmark compares the library with a named alternative on the same
machine. Ratios say more than absolute times, which depend on the machine and on its load. The tables compare
the figures with those of an earlier commit: `make bench AGAINST=<commit>` installs the commit in an
environment of its own and runs the benchmarks of both in turns. A figure is the median of all runs, with the
lowest and the highest value in brackets.

{machine}

| package | version |
|---|---|
{packages}
"""
FIGURE_ROWS = "| figure | limit | {before} | now |\n|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of a figure in all runs of a version, or why there are none."""

    values: list[float] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add(self, figure: Figure, outcome: Outcome) -> None:
        found = figure.find(outcome.output)
        self.values.extend(found)
        if not found:
            self.reasons.append(outcome.reason or "not printed")

    def __str__(self) -> str:
        return cell(self.values) if self.values else f"none: {self.reasons[0]}"


def names_of_benchmarks() -> list[str]:
    """Return the names of all benchmarks."""
    return sorted(script.stem for script in (PROJECT / "benchmarks").glob("*.py"))


def measure(name: str, now: Version) -> tuple[str, str]:
    """Run a benchmark as it is, and return its part of the page and why it failed, or an empty string."""
    load = os.getloadavg()[0]
    outcome = now.run(name)
    return _section(name, load, [outcome.output]), outcome.reason


def compare(name: str, now: Version, before: Version, rounds: int) -> tuple[str, str]:
    """Run a benchmark of two commits in turns, and return the same with a table of both.

    A benchmark without figures runs once, for this commit only.
    """
    runs = [run for run in RUNS if run.script == name]
    if not runs:
        return measure(name, now)
    load, failed = os.getloadavg()[0], ""
    outputs: list[str] = []
    rows: list[str] = []
    for run in runs:
        found = {figure: (_Values(), _Values()) for figure in run.figures}
        for _ in range(rounds):
            earlier = before.run(name, run.arguments, is_shared=run.is_shared)
            later = now.run(name, run.arguments, is_shared=run.is_shared)
            for figure, (old, new) in found.items():
                old.add(figure, earlier)
                new.add(figure, later)
        outputs.append(later.output)
        failed = failed or later.reason
        rows += _rows(run, found)
    table = [FIGURE_ROWS.format(before=f"commit {before.name}"), *rows, ""]
    return _section(name, load, outputs, table), failed


def _rows(run: Run, found: Mapping[Figure, tuple[_Values, _Values]]) -> Iterator[str]:
    for figure in run.figures:
        old, new = found[figure]
        yield f"| {figure.name} | {figure.limit} | {old} | {new} |"


def write_page(sections: Mapping[str, str]) -> None:
    """Write the page with these parts. Benchmarks that are not among them keep the part they have."""
    known = set(names_of_benchmarks())
    parts = {name: part for name, part in {**_sections_of_page(), **sections}.items() if name in known}
    OUTPUT.write_text("\n".join([_head(), *(parts[name] for name in sorted(parts))]), encoding="utf-8")


def _sections_of_page() -> dict[str, str]:
    """Return the parts of the page as it is, by the name of their benchmark."""
    parts = re.split(r"(?m)^(?=## )", OUTPUT.read_text(encoding="utf-8"))[1:]
    return {part.splitlines()[0].removeprefix("## ").replace(" ", "_"): part for part in parts}


def _head() -> str:
    rows = "\n".join(f"| {name} | {version(name)} |" for name in PACKAGES)
    return HEAD.format(machine="\n".join(_machine()), packages=rows)


def _machine() -> Iterator[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    model = next(models, platform.machine())
    yield f"- Date: {time.strftime('%Y-%m-%d', time.gmtime())}"
    yield f"- Machine: {model or platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    yield f"- Python: {platform.python_version()}"


def _section(name: str, load: float, outputs: Sequence[str], table: Sequence[str] = ()) -> str:
    script = PROJECT / "benchmarks" / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    head = [f"## {name.replace('_', ' ')}", "", docstring.replace("``", "`"), ""]
    load_line = [f"Load of the machine before the run: {load:.1f}.", ""]
    blocks = [line for output in outputs for line in ("```text", output, "```", "")]
    return "\n".join([*head, *load_line, *table, *blocks])
