"""Gives each problem its construct, the line of the app that creates it, and its template."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.code_hosts import from_folder
from constructs_triton_core.findings import Place
from constructs_triton_core.untrusted.regular_files import read_regular

from .report import Problem, Rehearsal
from .sources import Frame
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
        before, after = _stack(self.old, name), _stack(self.new, name)
        path = _construct(after, logical_id) or _construct(before, logical_id)
        path = path or next(iter(sorted(_names(after or before), key=len)), "")
        frame = _nearest(after or before, path)
        return replace(
            problem,
            construct=path,
            place=None if frame is None else _place(frame.file, frame.line, frame.column),
            template=_declaration(after or before, logical_id),
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
        stacks = {each.name for version in (self.new, self.old) for each in version.stacks}
        return (stacks.pop(), name) if len(stacks) == 1 else (name, name)

    @property
    def _endpoints(self) -> Mapping[str, tuple[str, str]]:
        return dict(each for version in (self.old, self.new) for each in _endpoints_of(version))


def _endpoints_of(version: Version) -> Iterator[tuple[str, tuple[str, str]]]:
    """The stack and the logical ID of each endpoint that a template gives a name, by this name."""
    for stack in version.stacks:
        for synthesized in stack.synthesized():
            for logical_id in synthesized.created(*ENDPOINT_TYPES):
                yield synthesized.name_of(logical_id), (stack.name, logical_id)


def _stack(version: Version, name: str) -> StackVersion | None:
    return next((each for each in version.stacks if each.name == name), None)


def _names(stack: StackVersion | None) -> frozenset[str]:
    return frozenset() if stack is None else stack.names


def _construct(stack: StackVersion | None, logical_id: str) -> str:
    """The path of a construct, from the path of its stack on; empty if it is not known."""
    if stack is None:
        return ""
    if logical_id in stack.paths:
        return stack.paths[logical_id]
    resource = stack.template.resources.get(logical_id)
    path = None if resource is None else resource.metadata.get(_PATH)
    return path if isinstance(path, str) else ""


def _nearest(stack: StackVersion | None, path: str) -> Frame | None:
    """The line that creates a construct, or the nearest one that it is in."""
    while stack is not None and path:
        if path in stack.sources:
            return stack.sources[path]
        path = path.rpartition("/")[0]
    return None


def _declaration(stack: StackVersion | None, logical_id: str) -> Place | None:
    """The line of the template that declares a resource; the first one if it has none."""
    if stack is None or stack.file is None:
        return None
    file = str(stack.file)
    # Of a resource in a nested stack, this template declares the nested stack.
    logical_id = logical_id.partition("/")[0]
    start = re.compile(rf"\s*[\"']?{re.escape(logical_id)}[\"']?\s*:")
    is_resource = False
    for number, line in enumerate(_lines(file), 1):
        is_resource = is_resource or line.strip().strip("\"'").startswith("Resources")
        if is_resource and start.match(line):
            return _place(file, number, len(line) - len(line.lstrip()) + 1)
    return _place(file, 1, 1)


def _place(file: str, line: int, column: int) -> Place:
    """A place from the column to the end of its line."""
    lines = _lines(file)
    end = len(lines[line - 1]) + 1 if line <= len(lines) else column
    here = os.path.realpath(".")
    return Place(from_folder(here, file), line, column, line, max(column, end))


@cache
def _lines(file: str) -> list[str]:
    """The lines of a file; none if it is not on this machine."""
    try:
        return read_regular(file).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
