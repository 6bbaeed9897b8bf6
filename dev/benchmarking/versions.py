"""Commits that are measured, each with an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_TREES = PROJECT / "build" / "benchmarks"
_LONGEST_REASON = 200
#: A run that takes so long hangs: the longest takes two minutes.
_LONGEST_SECONDS = 1200


class UnusableCommitError(Exception):
    """A commit that cannot be measured."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a benchmark printed; ``reason`` says why it printed no result, or is empty."""

    output: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """The files of a commit and the Python of its environment."""

    name: str
    tree: Path
    python: Path

    def run(
        self, script: str, arguments: tuple[str, ...] = (), *, is_shared: bool = False
    ) -> Outcome:
        """Run a benchmark of this commit, or with ``is_shared`` this project's benchmark."""
        path = (PROJECT if is_shared else self.tree) / "benchmarks" / f"{script}.py"
        if not path.is_file():
            return Outcome("", f"{self.name} has no {script}.py")
        project = ("--project", str(self.tree)) if is_shared else ()
        try:
            done = subprocess.run(
                [self.python, path, *arguments, *project],
                # A process that a benchmark starts does not import from the current folder.
                cwd=path.parent,
                env=self._environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                check=False,
                timeout=_LONGEST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return Outcome("", f"took more than {_LONGEST_SECONDS} s")
        output = done.stdout.rstrip()
        last = (output.splitlines() or [f"exit code {done.returncode}"])[-1]
        return Outcome(output, last[:_LONGEST_REASON] if done.returncode else "")

    def is_up_to(self, commit: str) -> bool:
        """Return whether this is the given commit or an earlier one.

        Raises:
            UnusableCommitError: there is no such commit.
        """
        done = _git("merge-base", "--is-ancestor", self.name, commit)
        if done.returncode > 1:
            raise UnusableCommitError(
                "benchmarks/limits.toml: up_to must be a commit of this repository, got "
                f"{commit!r}; see `git log`, or run `git fetch --unshallow --tags`"
            )
        return done.returncode == 0

    def _environment(self) -> dict[str, str]:
        # Older commits have the client in client/.
        folders = (self.tree, *sorted(self.tree.glob("packages/*/src")), self.tree / "client")
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "PATH": os.pathsep.join((str(self.python.parent), os.environ.get("PATH", ""))),
        }


def this_version() -> Version:
    """Return the files as they are, with the Python that runs this."""
    return Version("now", PROJECT, Path(sys.executable))


def installed_version(commit: str) -> Version:
    """Return a commit in ``build/benchmarks``, installed as its own Makefile does it.

    The network is needed only the first time. What a run that was stopped has left is written
    again.

    Raises:
        UnusableCommitError: there is no such commit, or it cannot be installed.
    """
    done = _git("rev-parse", "--short=8", "--verify", f"{commit}^{{commit}}")
    if done.returncode:
        raise UnusableCommitError(
            f"AGAINST: must be a commit of this repository, got {commit!r}; see `git log`, "
            "or run `git fetch --unshallow --tags`"
        )
    name = done.stdout.strip()
    tree = _TREES / name
    if not tree.exists():
        _write_files(name, tree)
    if not (tree / ".venv" / ".installed").exists():
        _install(name, tree)
    return Version(name, tree, tree / ".venv" / "bin" / "python")


def _write_files(name: str, tree: Path) -> None:
    """Write the files of a commit; the folder gets its name when all are there."""
    partial = tree.with_name(f"{name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    packed = partial.with_suffix(".tar")
    done = _git("archive", "--format=tar", f"--output={packed}", name)
    if done.returncode:
        raise UnusableCommitError(f"{name}: git cannot read its files: {done.stderr.strip()}")
    shutil.unpack_archive(packed, partial, filter="tar")
    packed.unlink()
    partial.rename(tree)


def _install(name: str, tree: Path) -> None:
    print(f"installing {name} in {tree.relative_to(PROJECT)} ...", flush=True)
    # A part of an environment, after a run that was stopped, may be broken.
    shutil.rmtree(tree / ".venv", ignore_errors=True)
    own = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VIRTUAL_ENV", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    command = ["make", "-C", str(tree), ".venv/.installed"]
    if subprocess.run(command, env=environment, check=False).returncode:
        raise UnusableCommitError(
            f"{name}: cannot be installed, see above; its packages are downloaded the first time, "
            f"so this needs the network. Then try again, or run `make -C {tree} .venv/.installed`"
        )


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", PROJECT, *arguments], capture_output=True, text=True, check=False
    )
