"""Check for system packages that pip and npm cannot install, and print or install what is missing.

This runs before anything is installed, so it uses the standard library only. With ``--install``, as
root and if apt-get exists, it installs what is missing. Otherwise it prints the command to run and
exits with 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

# pyproject.toml: requires-python.
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
# package.json of aws-cdk 2.1148.1: engines.
OLDEST_NODE = 18
LOCAL = (
    Path(__file__).resolve().parent.parent
    / "packages/tools/src/constructs_triton_tools/local/server"
)


@dataclass(frozen=True)
class MissingPiece:
    """A missing program or library, what requires it, and the Debian packages that contain it."""

    what: str
    needed_for: str
    packages: tuple[str, ...] = ()

    def __str__(self) -> str:
        fix = (
            f"; install it with: apt-get install {' '.join(self.packages)}" if self.packages else ""
        )
        return f"missing: {self.what}, needed for {self.needed_for}{fix}"


def missing_pieces(*, with_node: bool) -> Iterator[MissingPiece]:
    """List what is missing on this machine."""
    yield from _missing_for_python()
    yield from _missing_for_triton()
    if with_node:
        yield from _missing_for_node()


def _missing_for_python() -> Iterator[MissingPiece]:
    minor = sys.version_info[:2]
    if not OLDEST_PYTHON <= minor <= NEWEST_PYTHON:
        found = ".".join(map(str, minor))
        yield MissingPiece(
            f"a Python from 3.11 to 3.13, got {found}",
            "the package; choose one with: make PYTHON=python3.12",
        )
    elif importlib.util.find_spec("ensurepip") is None:
        yield MissingPiece("Python's ensurepip", "virtual environments", ("python3-venv",))


def _missing_for_triton() -> Iterator[MissingPiece]:
    """The stub of Triton's Python backend loads libpython, a shared library."""
    if sys.platform != "linux" or sys.version_info >= (3, 13):
        return  # Triton does not run on this machine; the local endpoint reports that
    name = f"libpython3.{sys.version_info.minor}"
    if _load_libpython_search().find_libpython(sys.version_info[:2]) is None:
        yield MissingPiece(
            f"{name}'s shared library", "the local endpoint's Python models", (name,)
        )


def _load_libpython_search() -> ModuleType:
    spec = importlib.util.spec_from_file_location("libpython", LOCAL / "libpython.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["libpython"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def _missing_for_node() -> Iterator[MissingPiece]:
    if shutil.which("node") is None:
        yield MissingPiece("Node.js", "the CDK", ("nodejs", "npm"))
        return
    version = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=False
    ).stdout.strip()
    major = re.match(r"v(\d+)\.", version)
    if major is None or int(major[1]) < OLDEST_NODE:
        yield MissingPiece(
            f"Node.js {OLDEST_NODE} or newer, got {version or 'no version'}", "the CDK (22 or 24)"
        )
    if shutil.which("npm") is None:
        yield MissingPiece("npm", "the CDK's command line", ("npm",))


def _install(packages: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["update", "-qq"],
        ["install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        print("+ apt-get", *command, flush=True)
        subprocess.run(
            ["apt-get", *command], check=False, env=environment, stdout=subprocess.DEVNULL
        )


def main() -> int:
    """Return 0 if nothing is missing, otherwise 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--install", action="store_true", help="as root, install what is missing with apt-get"
    )
    parser.add_argument(
        "--without-node", action="store_true", help="for what works without the CDK"
    )
    arguments = parser.parse_args()
    missing = list(missing_pieces(with_node=not arguments.without_node))
    packages = [package for piece in missing for package in piece.packages]
    if packages and arguments.install and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(packages)
        missing = list(missing_pieces(with_node=not arguments.without_node))
    for piece in missing:
        print(piece, file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
