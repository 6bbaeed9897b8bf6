"""Builds the wheels, and installs them in environments that have nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from members import PROJECT, members_of

#: The Python versions that the classifiers name.
PYTHON_VERSIONS = ("3.11", "3.12", "3.13", "3.14")
UV = (sys.executable, "-m", "uv")
#: uv keeps wheels by path: without this, it would install an earlier build from a folder of the
#: same name.
REFRESH = tuple(word for member in members_of() for word in ("--refresh-package", member.name))


class CommandError(Exception):
    """A command ended with another exit code than expected; the message has what it printed."""


def run(
    *command: str | Path, cwd: Path, variables: Mapping[str, str] | None = None, exit_code: int = 0
) -> str:
    """Run a command without the checkout's modules and variables of pytest, and return what it
    prints.

    With them, a pytest that it starts would take itself for a worker of this one, and not report.

    Raises:
        CommandError: the exit code is another one.
    """
    removed = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in removed and not name.startswith("PYTEST_")
    }
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**environment, **(variables or {})},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != exit_code:
        words = " ".join(map(str, command))
        raise CommandError(f"exit code {done.returncode} of {words[:200]}\n{done.stdout}")
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """An environment and a folder beside it, in which its commands run."""

    folder: Path

    @property
    def programs(self) -> Path:
        """The folder of its programs."""
        return self.folder / "venv" / "bin"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.programs / "python"

    @property
    def packages(self) -> set[str]:
        """The names of the packages that are installed."""
        code = (
            "from importlib.metadata import distributions; "
            "print(*(each.name for each in distributions()))"
        )
        return set(self.run("python", "-c", code).split())

    @property
    def megabytes(self) -> float:
        """The size of the installed files.

        Compiled files are included only after the packages were used.
        """
        (installed,) = (self.folder / "venv" / "lib").glob("python*/site-packages")
        return sum(each.stat().st_size for each in installed.rglob("*") if each.is_file()) / 1e6

    def run(self, program: str, *arguments: str | Path, exit_code: int = 0) -> str:
        """Run a program of the environment, and return what it prints."""
        return run(self.programs / program, *arguments, cwd=self.folder, exit_code=exit_code)


def build(dist: Path, project: Path = PROJECT) -> list[Path]:
    """Build the wheels and source distributions of all packages, as ``make dist`` does; return
    their files.

    The wheels are built from the source distributions.
    """
    run(*UV, "build", "--all-packages", "--quiet", "--out-dir", dist, cwd=project)
    return sorted(each for each in dist.iterdir() if each.suffix in (".whl", ".gz"))


def build_version(version: str, folder: Path, project: Path = PROJECT) -> Path:
    """Build all packages of the last commit with another version,
    and return the folder of the wheels.
    """
    clone, dist = folder / f"clone-{version}", folder / f"dist-{version}"
    run("git", "clone", "--quiet", project, clone, cwd=folder)
    run(sys.executable, clone / "dev" / "set_version.py", version, cwd=clone)
    build(dist, clone)
    return dist


def find_interpreter(version: str) -> Path | None:
    """Return the interpreter of a Python version, on the PATH or of pyenv,
    or ``None`` without one.
    """
    command = [*UV, "python", "find", "--no-python-downloads", version]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return Path(found.stdout.strip())
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return next(iter(sorted(versions.glob(f"{version}.*/bin/python"))), None)


def install(
    python: str | Path, folder: Path, *requirements: str | Path, dist: Path | None = None
) -> Environment:
    """Install packages in a new environment, those of this project from the files in ``dist``.

    The versions of other packages are those of ``constraints.txt``.
    """
    environment = Environment(folder)
    folder.mkdir(parents=True, exist_ok=True)
    run(*UV, "venv", "--quiet", "--python", python, folder / "venv", cwd=folder)
    options = () if dist is None else ("--find-links", str(dist))
    target = (
        "pip",
        "install",
        "--quiet",
        "--python",
        environment.python,
        "-c",
        PROJECT / "constraints.txt",
    )
    if requirements:
        run(*UV, *target, *options, *REFRESH, *requirements, cwd=folder)
    return environment


def add(environment: Environment, dist: Path, *words: str) -> None:
    """Run ``pip install`` with these words in an environment,
    with this project's packages from ``dist``.
    """
    options = ("--quiet", "--python", environment.python, "--find-links", dist)
    run(*UV, "pip", "install", *options, *REFRESH, *words, cwd=environment.folder)
