"""Runs every benchmark, or those that are named, and writes ``docs/benchmarks.md``: ``make bench``.

The page has what each benchmark prints, the machine, its load and the versions. The numbers of other pages
and of the README come from this page.
"""

from __future__ import annotations

import ast
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

PROJECT = Path(__file__).parents[1]
OUTPUT = PROJECT / "docs" / "benchmarks.md"
PACKAGES = ("aws-cdk-lib", "numpy", "tritonclient", "isal", "blake3", "onnx", "onnxruntime", "aiohttp")
HEAD = """# Benchmarks

`make bench` wrote this page. Each benchmark compares the library with a named alternative on the same
machine. Ratios say more than absolute times, which depend on the machine and on its load.

{machine}

| package | version |
|---|---|
{packages}
"""


def main(names: Sequence[str]) -> int:
    """Run the named benchmarks, or all, and return 1 if one of them failed."""
    sections, failed = {} if not names else _sections_of_page(), []
    for script in sorted((PROJECT / "benchmarks").glob("*.py")):
        if not names or script.stem in names:
            print(f"{script.name} ...", flush=True)
            code, sections[script.stem] = _section(script)
            failed += [script.name] if code else []
    OUTPUT.write_text("\n".join([_head(), *(sections[name] for name in sorted(sections))]), encoding="utf-8")
    print(f"wrote {OUTPUT.relative_to(PROJECT)}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def _sections_of_page() -> dict[str, str]:
    """Return the parts of the page as it is, by the name of their benchmark."""
    parts = re.split(r"(?m)^(?=## )", OUTPUT.read_text(encoding="utf-8"))[1:]
    return {part.splitlines()[0].removeprefix("## ").replace(" ", "_"): part for part in parts}


def _head() -> str:
    rows = "\n".join(f"| {name} | {version(name)} |" for name in PACKAGES)
    return HEAD.format(machine="\n".join(_machine()), packages=rows)


def _machine() -> Iterator[str]:
    model = next(
        (
            line.partition(": ")[2]
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    yield f"- Date: {time.strftime('%Y-%m-%d', time.gmtime())}"
    yield f"- Machine: {model or platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    yield f"- Python: {platform.python_version()}"


def _section(script: Path) -> tuple[int, str]:
    """Run a benchmark, and return its exit code and its part of the page."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    load = os.getloadavg()[0]
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    text, output = docstring.replace("``", "`"), done.stdout.rstrip()
    lines = [
        f"## {script.stem.replace('_', ' ')}",
        "",
        text,
        "",
        f"Load of the machine before the run: {load:.1f}.",
    ]
    return done.returncode, "\n".join([*lines, "", "```text", output, "```", ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
