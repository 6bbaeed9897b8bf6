"""Gives each problem its construct, the line of the app that creates it, and its template."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.code_hosts import from_folder
from constructs_triton_core.findings import Place
from constructs_triton_core.untrusted.regular_files import read_regular

from .report import Problem, Rehearsal
from .versions import StackVersion, Version

__all__ = ["with_places"]

_PATH = "aws:cdk:path"
_ENVIRONMENT = re.compile(r" \(aws://[^)]{0,200}\)$")
_OF_ENDPOINT = re.compile(r"(?:endpoint |inference component )?(?P<name>[^, ]+)")


def with_places(found: Rehearsal, old: Version, new: Version) -> Rehearsal:
    """Return the rehearsal with the places of its problems.

    Args:
        found: The rehearsal.
        old: The deployed version.
        new: The version to deploy.
    """
    places = _Places(old, new)
    return replace(found, problems=tuple(map(places.of, found.problems)))


@dataclass(frozen=True)
class _Places:
    old: Version
    new: Version

    def of(self, problem: Problem) -> Problem:
        """Return the problem with its places.

        A resource that NEW no longer has is shown where NEW creates what it was in.
        """
        name, logical_id = self._resource(problem)
        before = _stack(self.old, name)
        after = _stack(self.new, name)
        shown = after or before
        if shown is None:
            return replace(problem, construct="", place=None, template=None)

        path = _construct(shown, logical_id)
        if not path and before is not None:
            path = _construct(before, logical_id)
        # Without a construct of its own, the problem is shown at its stack.
        path = path or min(shown.names, key=len, default="")
        return replace(
            problem,
            construct=path,
            place=_creation(shown, path),
            template=_declaration(shown, logical_id),
        )

    def _resource(self, problem: Problem) -> tuple[str, str]:
        """The name of the stack, without those nested in it, and the logical ID."""
        place = _ENVIRONMENT.sub("", problem.path)
        if problem.stack:
            stack, _, nested = _ENVIRONMENT.sub("", problem.stack).partition("/")
            return stack, f"{nested}/{place}" if nested else place

        match = _OF_ENDPOINT.match(place)
        name = place if match is None else match["name"]
        if name in self._endpoints:
            return self._endpoints[name]

        stacks = {stack.name for stack in (*self.old.stacks, *self.new.stacks)}
        if len(stacks) == 1:
            return stacks.pop(), name
        return name, name  # a problem of a whole stack has its name

    @cached_property
    def _endpoints(self) -> Mapping[str, tuple[str, str]]:
        """The stack and the logical ID of each endpoint by its name; NEW takes precedence."""
        return {**dict(_endpoints_of(self.old)), **dict(_endpoints_of(self.new))}


def _endpoints_of(version: Version) -> Iterator[tuple[str, tuple[str, str]]]:
    """The stack and the logical ID of each endpoint that a template gives a name, by this name."""
    for stack in version.stacks:
        for synthesized in stack.synthesized():
            for logical_id in synthesized.created(*ENDPOINT_TYPES):
                yield synthesized.name_of(logical_id), (stack.name, logical_id)


def _stack(version: Version, name: str) -> StackVersion | None:
    """Return the stack of this name, or ``None``."""
    for stack in version.stacks:
        if stack.name == name:
            return stack
    return None


def _construct(stack: StackVersion, logical_id: str) -> str:
    """The path of a construct, from the path of its stack on; empty if it is not known."""
    if logical_id in stack.paths:
        return stack.paths[logical_id]
    resource = stack.template.resources.get(logical_id)
    path = None if resource is None else resource.metadata.get(_PATH)
    return path if isinstance(path, str) else ""


def _creation(stack: StackVersion, path: str) -> Place | None:
    """The line of the app that creates a construct, or the nearest one that it is in."""
    while path:
        frame = stack.sources.get(path)
        if frame is not None:
            return _place(frame.file, frame.line, frame.column)
        path = path.rpartition("/")[0]
    return None


def _declaration(stack: StackVersion, logical_id: str) -> Place | None:
    """The line of the template that declares a resource; the first one if it has none."""
    if stack.file is None:
        return None

    file = str(stack.file)
    # Of a resource in a nested stack, this template declares the nested stack.
    declared, _, _ = logical_id.partition("/")
    start = re.compile(rf"\s*[\"']?{re.escape(declared)}[\"']?\s*:")
    is_in_resources = False  # outputs and parameters before them may have the same name
    for number, line in enumerate(_lines(file), 1):
        if line.strip().strip("\"'").startswith("Resources"):
            is_in_resources = True
        if is_in_resources and start.match(line):
            indent = len(line) - len(line.lstrip())
            return _place(file, number, indent + 1)
    return _place(file, 1, 1)


def _place(file: str, line: int, column: int) -> Place:
    """A place from the column to the end of its line."""
    lines = _lines(file)
    end = column
    if line <= len(lines):
        end = len(lines[line - 1]) + 1
    here = os.path.realpath(".")
    return Place(from_folder(here, file), line, column, line, max(column, end))


@cache
def _lines(file: str) -> list[str]:
    """The lines of a file; none if it is not on this machine."""
    try:
        return read_regular(file).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
