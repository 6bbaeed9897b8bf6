"""The parts of the text of a rehearsal: problems, tables, labelled lines, and names."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdk_rehearse.updates.report import Leftover, Problem, Rehearsal

_WIDTH = 84
#: Of more names than these, only the first are printed.
_MANY = 6
#: Of more types than these that are not simulated, only the services are printed.
_MANY_TYPES = 4
_TYPE = re.compile(r"AWS::(\w+)::\w+ ")
"""The beginning of a note about resources of one type, with its service."""
Named = Callable[[str], str]
"""Writes the paths of constructs in place of logical IDs."""


def problem_lines(found: Rehearsal, problems: Iterable[Problem]) -> Iterator[str]:
    """Yield the problems; those that differ only in their places are one, with all places."""
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for problem in problems:
        same = (problem.severity, problem.code, problem.message, problem.hint)
        groups.setdefault(same, []).append(problem)

    for group in groups.values():
        yield ""
        places = _some([found.place_of(problem) for problem in group])
        text = str(replace(group[0], path=places))
        for line in text.split("\n"):
            yield from wrapped(found.named(line))
        lines = _lines_of_app(group)
        if lines:
            yield f"    at {_some(lines)}"


def _lines_of_app(problems: Iterable[Problem]) -> list[str]:
    """Where the app creates the constructs of problems, each place once."""
    lines = []
    for problem in problems:
        if problem.place is not None:
            lines.append(f"{problem.place.file}:{problem.place.line}")
    return list(dict.fromkeys(lines))


def leftover_names(leftovers: Iterable[Leftover], named: Named) -> str:
    """Name resources with their types; those of several stacks once."""
    counts: Counter[str] = Counter()
    for leftover in leftovers:
        counts[f"{named(leftover.logical_id)} ({short_type(leftover.type)})"] += 1

    names = []
    for name, count in counts.items():
        names.append(name if count == 1 else f"{name} in {count} stacks")
    return ", ".join(names)


def shortened_notes(notes: Sequence[str]) -> Iterator[str]:
    """Yield the notes about what is not simulated, of many types only their services, and of many
    names only the first.
    """
    services = [match[1] for match in map(_TYPE.match, notes) if match]
    has_many_types = len(services) > _MANY_TYPES
    if has_many_types:
        once = ", ".join(dict.fromkeys(services))
        yield f"what resources of {len(services)} types do ({once}); --json lists them"

    for note in notes:
        if has_many_types and _TYPE.match(note):
            continue
        names = note.split(", ")
        if len(names) > _MANY:
            yield f"{_some(names)}; --json lists them"
        else:
            yield note


def _some(names: Sequence[str]) -> str:
    """The names, of many only the first and the number of the others."""
    if len(names) <= _MANY:
        return ", ".join(names)

    first = names[: _MANY - 1]
    return f"{', '.join(first)} and {len(names) - len(first)} more"


def short_type(type: str) -> str:
    """The type without the service."""
    return type.rpartition("::")[2]


def serving_text(serving: Mapping[str, str], named: Named) -> str:
    """What the endpoints serve; their names only if they serve different versions."""
    if not serving:
        return "-"
    if len(set(serving.values())) == 1:
        return next(iter(serving.values()))
    return "; ".join(f"{named(name)} {version}" for name, version in serving.items())


def wrapped(line: str, indent: int = 4) -> list[str]:
    """Break a line; those that continue it are indented."""
    return textwrap.wrap(
        line, _WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines beside a title, which only the first one has."""
    for line in lines:
        yield from wrapped(f"  {title:<15} {line}", 20)
        title = ""


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows as a table, without columns that say nothing."""
    columns = [column for column in zip(*rows, strict=True) if set(column[1:]) != {"-"}]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        yield f"  {'  '.join(cells).rstrip()}"


def counted(count: int, noun: str) -> str:
    """A number with its noun, which has its plural unless the number is one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
