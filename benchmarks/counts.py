"""Counts what a synth loads and calls: `python benchmarks/counts.py [--project DIR]`.

The lines are those of this project's own modules that one endpoint (``examples/basic``) loads, with an empty
cache. A call through jsii is one message from Python to the CDK in Node. These numbers are the same in each
run on each machine.

``--project`` is another checkout, whose environment runs this file: it imports nothing of the project.
"""

from __future__ import annotations

import argparse
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

OWN = ("constructs_triton", "triton_model_check", "cdk_rehearse")
MESSAGES = [
    *("create", "get", "set", "sget", "sset", "invoke", "sinvoke", "delete", "load", "enums"),
    *("callbacks", "complete", "begin", "end", "naming", "stats", "getScriptPath"),
]
APPS = {
    "basic": "examples/basic/app.py",
    "multi_model": "examples/multi_model/app.py",
    "app.py": "app.py",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--project", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count:
        count(arguments.count)
        return
    print(f"{'':16}{'own lines':>10}{'calls through jsii':>20}")
    for name, app in APPS.items():
        lines, calls = counted(arguments.project.resolve(), app)
        print(f"{name:16}{lines:10,}{calls:20,}", flush=True)


def counted(project: Path, app: str) -> tuple[int, int]:
    """Run an app in a process of its own; return its lines and its calls."""
    command = [sys.executable, __file__, "--count", str(project / app)]
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "CDK_OUTDIR": f"{folder}/cdk.out",
            "CDK_VALIDATION": "false",
            "CONSTRUCTS_TRITON_CACHE_DIR": f"{folder}/cache",
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,20",
        }
        run = subprocess.run(
            command, cwd=project, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    lines, calls = map(int, run.stdout.split()[-2:])
    return lines, calls


def count(app: Path) -> None:
    """Run an app in this process, and print its lines and its calls."""
    from jsii._kernel.providers.process import ProcessProvider  # noqa: PLC0415 - of the other checkout

    calls: list[str] = []
    for name in MESSAGES:
        if original := getattr(ProcessProvider, name, None):
            setattr(ProcessProvider, name, noted(original, calls))
    sys.path.insert(0, str(app.parent))
    runpy.run_path(str(app), run_name="__main__")
    files = {
        module.__file__
        for name, module in sys.modules.items()
        if name.startswith(OWN) and (getattr(module, "__file__", None) or "").endswith(".py")
    }
    print(sum(len(Path(str(file)).read_text(encoding="utf-8").splitlines()) for file in files), len(calls))


def noted(original: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    """Return a method that notes each of its calls."""

    def method(*arguments: Any, **keywords: Any) -> Any:
        calls.append(original.__name__)
        return original(*arguments, **keywords)

    return method


if __name__ == "__main__":
    main()
