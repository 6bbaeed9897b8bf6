"""Draws mutants at random, in proportion to the statements of each file."""

from __future__ import annotations

import difflib
import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .mutations import Mutation, Statement, statements

__all__ = ["PACKAGES", "Mutant", "draw", "find", "source_files", "source_folders"]

# The folders of the packages, and where tests/unit has the tests of each.
PACKAGES = {
    "constructs_triton": "",
    "packages/core/src/constructs_triton_core": "",
    "packages/check/src/triton_model_check": "",
    "packages/functions/src/constructs_triton_functions": "custom_resource_handlers",
    "packages/client/src/constructs_triton_client": "client",
    "packages/rehearse/src/cdk_rehearse": "rehearsal",
    "packages/tools/src/constructs_triton_tools": "",
}


@dataclass(frozen=True)
class Mutant:
    """One mutation of one file, with an id that stays the same while other code changes."""

    id: str
    path: str
    """Path of the file below the project's folder."""
    statement: Statement
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.id} {self.path}:{self.mutation.start[0]} {self.mutation.description}"

    def mutated(self, project: Path) -> bytes:
        """Return the mutated source of the file."""
        return self.mutation.apply((project / self.path).read_bytes())

    def diff(self, project: Path) -> str:
        """Return the mutation as a unified diff."""
        before, after = (project / self.path).read_text(), self.mutated(project).decode()
        lines = difflib.unified_diff(
            before.splitlines(True), after.splitlines(True), self.path, self.path, n=2
        )
        return "".join(lines)


def source_files(project: Path) -> list[Path]:
    """Return the modules of all packages."""
    return [file for package in PACKAGES for file in sorted((project / package).rglob("*.py"))]


def source_folders(project: Path) -> list[str]:
    """Return the folders from which Python imports the packages."""
    return [str((project / package).parent) for package in PACKAGES]


def draw(project: Path, count: int, seed: int, packages: list[str]) -> list[Mutant]:
    """Draw one mutation of each of ``count`` statements; a larger count keeps those of a smaller one."""
    drawn = [(_digest(seed, key), path, key, s) for path, key, s in _keyed(project, packages)]
    drawn.sort(key=lambda entry: entry[0])
    return [_mutant(path, key, statement, order) for order, path, key, statement in drawn[:count]]


def find(project: Path, identifier: str) -> Mutant:
    """Return the mutant with this id.

    Raises:
        SystemExit: no mutation of the present code has this id.
    """
    for path, key, statement in _keyed(project, []):
        for mutation in statement.mutations:
            if _id(key, statement, mutation) == identifier:
                return Mutant(identifier, path, statement, mutation)
    raise SystemExit(f"{identifier}: no mutation of the present code has this id")


def _keyed(project: Path, packages: list[str]) -> Iterator[tuple[str, str, Statement]]:
    folders = tuple(f"{top}/{package}" for top in PACKAGES for package in packages or [""])
    for file in source_files(project):
        path = file.relative_to(project).as_posix()
        if not path.startswith(folders):
            continue
        seen: Counter[str] = Counter()
        for statement in statements(file.read_text()):
            key = f"{path}:{statement.scope}:{statement.text}"
            seen[key] += 1
            yield path, f"{key}:{seen[key]}", statement


def _mutant(path: str, key: str, statement: Statement, order: str) -> Mutant:
    mutation = random.Random(order).choice(statement.mutations)
    return Mutant(_id(key, statement, mutation), path, statement, mutation)


def _id(key: str, statement: Statement, mutation: Mutation) -> str:
    return _digest(0, f"{key}:{statement.mutations.index(mutation)}")[:8]


def _digest(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed}:{text}".encode()).hexdigest()
