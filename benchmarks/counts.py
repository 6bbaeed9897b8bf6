"""Counts the calls of a synth through jsii: `python benchmarks/counts.py [--project DIR]`.

A call through jsii is one message from Python to the CDK in Node. The number is the same in each
run on each machine.

``--project`` is another checkout, whose environment runs this file: it imports nothing of the
project.
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

MESSAGES = [
    *("create", "get", "set", "sget", "sset", "invoke", "sinvoke", "delete", "load", "enums"),
    *("callbacks", "complete", "begin", "end", "naming", "stats", "getScriptPath"),
]
APPS = {
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
    print(f"{'':16}{'calls through jsii':>20}")
    for name, app in APPS.items():
        print(f"{name:16}{counted(arguments.project.resolve(), app):20,}", flush=True)


def counted(project: Path, app: str) -> int:
    """Run an app in a process of its own, and return its calls."""
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
    return int(run.stdout.split()[-1])


def count(app: Path) -> None:
    """Run an app in this process, and print its calls."""
    from jsii._kernel.providers.process import ProcessProvider  # noqa: PLC0415 - of the other checkout

    calls: list[str] = []
    for name in MESSAGES:
        if original := getattr(ProcessProvider, name, None):
            setattr(ProcessProvider, name, noted(original, calls))
    sys.path.insert(0, str(app.parent))
    runpy.run_path(str(app), run_name="__main__")
    print(len(calls))


def noted(original: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    """Return a method that notes each of its calls."""

    def method(*arguments: Any, **keywords: Any) -> Any:
        calls.append(original.__name__)
        return original(*arguments, **keywords)

    return method


if __name__ == "__main__":
    main()
