"""Commits that are measured, each with an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_TREES = PROJECT / "build" / "benchmarks"
_LONGEST_REASON = 200


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

    def run(self, script: str, arguments: tuple[str, ...] = (), *, is_shared: bool = False) -> Outcome:
        """Run a benchmark of this commit, or with ``is_shared`` this project's benchmark."""
        path = (PROJECT if is_shared else self.tree) / "benchmarks" / f"{script}.py"
        if not path.is_file():
            return Outcome("", f"{self.name} has no {script}.py")
        project = ("--project", str(self.tree)) if is_shared else ()
        done = subprocess.run(
            [self.python, path, *arguments, *project],
            cwd=self.tree,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        output = done.stdout.rstrip()
        last = (output.splitlines() or [f"exit code {done.returncode}"])[-1]
        return Outcome(output, last[:_LONGEST_REASON] if done.returncode else "")

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

    Raises:
        SystemExit: there is no such commit, or it cannot be installed.
    """
    done = _git("rev-parse", "--short", "--verify", f"{commit}^{{commit}}")
    if done.returncode:
        sys.exit(f"AGAINST: must be a commit of this repository, got {commit!r}; see `git log`")
    name = done.stdout.strip()
    tree = _TREES / name
    if not tree.exists():
        _git("worktree", "prune")
        added = _git("worktree", "add", "--detach", str(tree), name)
        if added.returncode:
            sys.exit(f"{tree}: cannot be created: {added.stderr.strip()}; remove it and try again")
    print(f"installing {name} in {tree.relative_to(PROJECT)} ...", flush=True)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "VIRTUAL_ENV")
    }
    if subprocess.run(["make", "-C", tree, ".venv/.installed"], env=environment, check=False).returncode:
        sys.exit(f"{name}: cannot be installed; run `make -C {tree} .venv/.installed`")
    return Version(name, tree, tree / ".venv" / "bin" / "python")


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", PROJECT, *arguments], capture_output=True, text=True, check=False)
