"""Builds the distributions of both packages, and installs them in environments that have nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
UV = (sys.executable, "-m", "uv")


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command outside the checkout, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment | variables,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def build(folder: Path, *sources: Path) -> Path:
    """Build wheels and source distributions as ``make dist`` does, of both packages or of some."""
    folder.mkdir(exist_ok=True)
    for source in sources or (PROJECT / "client", PROJECT):
        run(*UV, "build", "--quiet", "--out-dir", folder, source, cwd=folder)
    return folder


def wheel_of(distributions: Path, name: str) -> Path:
    """Return the wheel of a package."""
    (built,) = distributions.glob(f"{name}-*.whl")
    return built


def new_environment(interpreter: str, folder: Path, *packages: str | Path) -> Path:
    """Install packages in a new environment, and return its folder of programs."""
    programs = folder / "venv" / "bin"
    run(*UV, "venv", "--quiet", "--python", interpreter, programs.parent, cwd=folder)
    if packages:
        install = ("pip", "install", "--quiet", "--python", programs / "python")
        run(*UV, *install, "-c", PROJECT / "constraints.txt", *packages, cwd=folder)
    return programs


def installed(programs: Path) -> set[str]:
    """Return the names of the packages of an environment."""
    code = "from importlib.metadata import distributions; print(*(each.name for each in distributions()))"
    return set(run(programs / "python", "-c", code, cwd=programs).split())


def interpreter_of(version: str) -> str:
    """Return the interpreter of a Python version, on the PATH or of pyenv; skip the test without one."""
    command = [*UV, "python", "find", "--no-python-downloads", version]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return found.stdout.strip()
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    others = sorted(versions.glob(f"{version}.*/bin/python"))
    if not others:
        pytest.skip(f"Python {version} is not installed")
    return str(others[0])
