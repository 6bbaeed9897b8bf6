"""Writes ``dev/project/benchmarks.md``: what each benchmark prints, and the tables of comparisons.

The page has the machine, its load and the versions too. The numbers of other pages and of the
README come from this page.
"""

from __future__ import annotations

import ast
import os
import platform
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarking.comparison import Compared, table
from benchmarking.figures import Limits, cell
from benchmarking.versions import PROJECT, Version

OUTPUT = PROJECT / "dev" / "project" / "benchmarks.md"
PACKAGES = (
    "aws-cdk-lib",
    "numpy",
    "tritonclient",
    "isal",
    "blake3",
    "onnx",
    "onnxruntime",
    "aiohttp",
)
HEAD = """# Benchmarks

`make bench` wrote this page. Each benchmark compares the library with a named alternative on the
same machine. Ratios say more than absolute times, which depend on the machine and on its load. A
figure is the median of all runs, with the lowest and the highest value in brackets.

`make bench AGAINST=<commit>` compares short figures with those of an earlier commit. It installs
the commit in an environment of its own and measures both in turns. Times are processor time where
the name of a figure does not say "by the clock". `benchmarks/limits.toml` has the figures and their
limits. The command fails if a figure is more than 10 percent worse than before and the file does
not say why.

{machine}

| package | version |
|---|---|
{packages}
"""
FIGURE_ROWS = "| figure | limit | now |\n|---|---|---|"
#: Begins what was measured, after the docstring of a benchmark.
MEASURED = "Load of the machine before the run:"


def names_of_benchmarks() -> list[str]:
    """Return the names of all benchmarks."""
    return sorted(script.stem for script in (PROJECT / "benchmarks").glob("*.py"))


def measure(name: str, now: Version, limits: Limits) -> tuple[str, str]:
    """Run a benchmark as it is, and return its part of the page and why it failed,
    or an empty string.
    """
    load = os.getloadavg()[0]
    outcome = now.run(name)
    figures = [
        each
        for run in limits.runs
        if run.script == name and not run.arguments
        for each in run.figures
    ]
    rows = [
        f"| {figure.name} | {figure.shown_limit(median(values))} | {cell(values)} |"
        for figure in figures
        if figure.limit and (values := figure.find(outcome.output))
    ]
    lines = [f"{MEASURED} {load:.1f}.", "", *([FIGURE_ROWS, *rows, ""] if rows else [])]
    return "\n".join((*_title(name), *lines, "```text", outcome.output, "```")), outcome.reason


def write_comparison(found: Iterable[Compared], commit: str, rounds: int, load: str) -> None:
    """Write the table of a comparison, in place of an earlier one with the same commit."""
    title = f"compared with {commit}"
    head = f"Medians of {rounds} rounds on {_today()}; {load}."
    write_page({title: "\n".join((f"## {title}", "", head, "", *table(found, commit)))})


def write_page(sections: Mapping[str, str]) -> None:
    """Write the page with these parts.

    All others stay, and get the present docstring of their benchmark.
    """
    known = names_of_benchmarks()
    parts = {**_sections_of_page(), **sections}
    compared = [part for name, part in parts.items() if name.startswith("compared with ")]
    measured = [_with_present_docstring(name, parts[name]) for name in known if name in parts]
    written = OUTPUT.with_suffix(".new")
    written.write_text(
        "\n\n".join([_head().strip(), *(part.strip() for part in (*compared, *measured))]) + "\n",
        "utf-8",
    )
    written.replace(OUTPUT)


def _sections_of_page() -> dict[str, str]:
    """Return the parts of the page as it is, by the name of their benchmark."""
    parts = re.split(r"(?m)^(?=## )", OUTPUT.read_text(encoding="utf-8"))[1:]
    titles = (part.splitlines()[0].removeprefix("## ") for part in parts)
    names = (title if title.startswith("compared") else title.replace(" ", "_") for title in titles)
    return dict(zip(names, parts, strict=True))


def _with_present_docstring(name: str, part: str) -> str:
    return "\n".join((*_title(name), part[part.index(MEASURED) :]))


def _title(name: str) -> list[str]:
    script = PROJECT / "benchmarks" / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return [f"## {name.replace('_', ' ')}", "", docstring.replace("``", "`"), ""]


def _head() -> str:
    rows = "\n".join(f"| {name} | {version(name)} |" for name in PACKAGES)
    return HEAD.format(machine="\n".join(_machine()), packages=rows)


def _machine() -> Iterator[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    model = next(models, platform.machine())
    yield f"- Date: {_today()}"
    yield f"- Machine: {model or platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    yield f"- Python: {platform.python_version()}"


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())
