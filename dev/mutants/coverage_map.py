"""Knows which tests execute a line of the package: built by one run of the tests, kept in a folder."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import coverage

from .sample import PACKAGES, Mutant, source_files, source_folders

__all__ = ["CoverageMap", "build"]

_RCFILE = Path(__file__).with_name("coveragerc")


def build(project: Path, folder: Path, tests: list[str]) -> None:
    """Run the tests and record the map; with ``tests``, only those, added to the map that exists."""
    if not tests:
        for old in [*folder.glob("coverage*"), *folder.glob("tests-*.json")]:
            old.unlink()
    folder.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "COVERAGE_PROCESS_START": str(_RCFILE),
        "MUTANTS_PROJECT": str(project),
        "MUTANTS_FOLDER": str(folder),
        "PYTHONPATH": os.pathsep.join([*source_folders(project), str(project / "dev")]),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "-p",
        "mutants.recorder",
    ]
    subprocess.run([*command, *tests], cwd=project, env=environment, check=False)
    combine = [sys.executable, "-m", "coverage", "combine", "-q", "--append", f"--rcfile={_RCFILE}"]
    subprocess.run(combine, cwd=project, env={**environment, "COVERAGE_PROCESS_START": ""}, check=True)
    (folder / "sources.json").write_text(json.dumps(_hashes(project)))


def _hashes(project: Path) -> dict[str, str]:
    return {
        file.relative_to(project).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in source_files(project)
    }


@dataclass(frozen=True)
class CoverageMap:
    """The recorded map of a project."""

    project: Path
    folder: Path
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Seconds, outcome and whether it is an e2e test, by the test's id."""
    fixtures: dict[str, float] = field(default_factory=dict)
    """Seconds of the shared fixtures of each test file."""

    @classmethod
    def read(cls, project: Path, folder: Path) -> CoverageMap:
        """Read the map of a folder."""
        found = cls(project, folder)
        for path in sorted(folder.glob("tests-*.json"), key=lambda path: path.stat().st_mtime):
            recorded = json.loads(path.read_text())
            found.tests.update(recorded["tests"])
            found.fixtures.update(recorded["fixtures"])
        return found

    @property
    def is_current(self) -> bool:
        """Whether the map exists and the package is what it was when the map was recorded."""
        recorded = self.folder / "sources.json"
        return recorded.exists() and json.loads(recorded.read_text()) == _hashes(self.project)

    def tests_of(self, mutant: Mutant) -> set[str]:
        """Return the passing tests that may notice the mutant."""
        names = self._names_at(mutant.path, mutant.statement.lines) if mutant.statement.in_function else set()
        if names or mutant.statement.in_function:
            return names
        # What runs at import is noticed where the names that it defines are used.
        return self._users_of(mutant) or self._names_at(mutant.path, None)

    def seconds(self, tests: Iterable[str]) -> float:
        """Return how long the tests took, each file's shared fixtures included."""
        files = {test.split("::")[0] for test in tests}
        shared = sum(self.fixtures.get(file, 0.0) for file in files)
        return shared + sum(float(self.tests[test]["seconds"]) for test in tests)

    @cached_property
    def _data(self) -> coverage.CoverageData:
        data = coverage.CoverageData(str(self.folder / "coverage"))
        data.read()
        return data

    @cached_property
    def _tests_by_file(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name in self.tests:
            found.setdefault(name.split("::")[0], set()).add(name)
        return found

    def _names_at(self, path: str, lines: range | None) -> set[str]:
        by_line = self._contexts.get(path, {})
        contexts = {c for line in (lines or by_line) for c in by_line.get(line, ())}
        names = {c for c in contexts if c in self.tests}
        for context in contexts - names:
            names |= self._tests_by_file.get(context, set())
        return {name for name in names if self.tests[name]["passed"]}

    @cached_property
    def _contexts(self) -> dict[str, dict[int, list[str]]]:
        found: dict[str, dict[int, list[str]]] = {}
        for file in self._data.measured_files():
            # Processes that start in another folder record absolute paths.
            path = _relative(file)
            by_line = found.setdefault(path, {})
            for line, contexts in self._data.contexts_by_lineno(file).items():
                by_line.setdefault(line, []).extend(contexts)
        return found

    def _users_of(self, mutant: Mutant) -> set[str]:
        names = _defined(mutant.statement.node) or {mutant.statement.scope.rsplit(".", 1)[-1]}
        found: set[str] = set()
        for path, lines_by_name in self._uses.items():
            for name in names - {""}:
                for line in lines_by_name.get(name, ()):
                    found |= self._names_at(path, range(line, line + 1))
        return found

    @cached_property
    def _uses(self) -> dict[str, dict[str, set[int]]]:
        """By file and name, the lines inside functions that use the name."""
        found: dict[str, dict[str, set[int]]] = {}
        for path in _hashes(self.project):
            uses = found.setdefault(path, {})
            module = ast.parse((self.project / path).read_text())
            functions = [n for n in ast.walk(module) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            for node in (node for function in functions for line in function.body for node in ast.walk(line)):
                name = getattr(node, "id", None) or getattr(node, "attr", None)
                if name:
                    uses.setdefault(name, set()).add(node.lineno)  # type: ignore[attr-defined]
        return found


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {t.id for target in targets if target for t in ast.walk(target) if isinstance(t, ast.Name)}


def _relative(file: str) -> str:
    """Return the path below the project's folder, which may be another one than that of this process."""
    starts = [file.rfind(f"{package}/") for package in PACKAGES]
    return file[max(starts) :] if Path(file).is_absolute() and max(starts) >= 0 else file
