"""Measures the start of commands and of the constructs, in processor time.

    python benchmarks/starts.py [--rounds 5] [--project DIR]

A command is a whole process, with the processes that it starts. Its models are new and its cache is
empty, as in a hook before a commit. ``bare Python`` is the least that a command in Python needs.
The import of the constructs is that of the names that ``examples/basic`` uses, after the modules of
the CDK that they load, with its ratio to the import of these modules in the same processes.

The shortest of the rounds counts. ``--project`` is another checkout, whose environment runs this
file: it imports nothing of the project. A command that the other checkout lacks is left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from waits import PYTHON_MODEL, run, write_models

SCRIPTS = Path(sys.executable).parent
OURS = (
    "from constructs_triton import InstanceType, ModelSource, TritonEndpoint, TritonModelRepository"
)
MODULES_OF_THE_CDK = f"""
{OURS}
import sys
packages = ("aws_cdk", "constructs", "jsii")
print(*(name for name in sys.modules if name.partition(".")[0] in packages))
"""
IMPORT = f"""
import importlib, sys, time
started = time.process_time()
for name in sys.argv[1:]:
    importlib.import_module(name)
begun = time.process_time()
{OURS}
print(time.process_time() - begun, begun - started)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--project", type=Path, default=Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    # Modules are compiled once, as on any machine but a careful one.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        os.chdir(arguments.project)
        show("bare Python", arguments.rounds, lambda: run(sys.executable, "-c", "pass")[1])
        for name, command in commands(folder):
            if (SCRIPTS / command[0]).exists():
                show(name, arguments.rounds, lambda command=command: cpu_of(folder, *command))  # type: ignore[misc]
        show_import(arguments.rounds)


def commands(folder: Path) -> list[tuple[str, tuple[str | Path, ...]]]:
    """Write models, and return the commands that read them."""
    for count in (1, 3):
        write_models(folder / f"models_{count}", count, "model.py", PYTHON_MODEL.encode())
    write_models(folder / "large", 1, "model.py", PYTHON_MODEL.encode())
    (folder / "large" / "model_0000" / "1" / "weights.bin").write_bytes(os.urandom(100_000_000))
    one, three, archives = folder / "models_1", folder / "models_3", folder / "archives"
    return [
        ("--help", ("constructs-triton", "--help")),
        ("triton-model-check, one model", ("triton-model-check", one)),
        ("check, three models", ("constructs-triton", "check", three)),
        ("pack, three models", ("constructs-triton", "pack", three, "-o", archives)),
        ("pack, 100 MB", ("constructs-triton", "pack", folder / "large", "-o", archives)),
    ]


def cpu_of(folder: Path, script: str, *arguments: str | Path) -> float:
    """Run a command with an empty cache and a new folder for its output;
    return its seconds of CPU.
    """
    with tempfile.TemporaryDirectory(dir=folder) as new:
        os.environ["CONSTRUCTS_TRITON_CACHE_DIR"] = f"{new}/cache"
        words = [
            Path(new, each.name) if each == folder / "archives" else each
            for each in map(Path, arguments)
        ]
        return run(SCRIPTS / script, *words)[1]


def show_import(rounds: int) -> None:
    """Measure the import of the constructs alone, and that of the CDK's modules."""
    modules = printed(MODULES_OF_THE_CDK).split()
    measured = [tuple(map(float, printed(IMPORT, *modules).split())) for _ in range(rounds)]
    ours = min(ours for ours, _ in measured)
    of_the_cdk = min(of_the_cdk for _, of_the_cdk in measured)
    print(
        f"{'import of the constructs':32}{ours:8.3f} s of CPU, "
        f"{ours / of_the_cdk:.3f} times that of the CDK's modules",
        flush=True,
    )


def printed(code: str, *arguments: str) -> str:
    """Return what a program prints."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def show(name: str, rounds: int, action: Callable[[], float]) -> None:
    print(f"{name:32}{min(action() for _ in range(rounds)):8.3f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
