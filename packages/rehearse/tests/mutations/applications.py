"""Harmless edits of synthesized apps: combined, and one by one if a combination is reported."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import Failures, Request, Version, read_version
from constructs_triton_core.cloud_assembly.template import Template

from .harmless import EDITS, GROUPS, Edit
from .mutant import Body
from .removal import removable, remove


@dataclass(frozen=True)
class Edited:
    """A rehearsal of edits of one app.

    Args:
        app: Name of the app.
        edits: The edits that found something to edit.
        found: The rehearsal.
    """

    app: str
    edits: tuple[str, ...]
    found: Rehearsal


def edited(version: Version, edits: Mapping[str, Edit]) -> tuple[Version, tuple[str, ...]]:
    """The version with the edits in every stack,
    and the names of those that found something to edit.
    """
    stacks, applied = [], []
    for stack in version.stacks:
        body = copy.deepcopy(dict(stack.template.body))
        applied += [name for name, edit in edits.items() if edit(body)]
        stacks.append(replace(stack, template=Template(body)))
    return Version(tuple(stacks)), tuple(dict.fromkeys(applied))


def combined(assembly: Path, groups: Iterable[Mapping[str, Edit]] = GROUPS) -> Iterator[Edited]:
    """Rehearse each group of edits at once; one that is reported is rehearsed edit by edit."""
    for group in groups:
        together = rehearsed(assembly, group)
        if not together.found.problems:
            yield together
            continue
        for name in together.edits:
            yield rehearsed(assembly, {name: group[name]})


def rehearsed(
    assembly: Path, edits: Mapping[str, Edit], failures: Failures = "none", orders: int = 1
) -> Edited:
    """Rehearse an app with edits."""
    old = read_version(assembly)
    new, applied = edited(old, edits)
    return Edited(assembly.name, applied, simulate(Request(old, new, {}, failures, orders)))


def edits_of(assembly: Path, count: int = 20) -> dict[str, Edit]:
    """A number of edits of an app, evenly spread: half are harmless, half remove a reference."""
    old = read_version(assembly)
    harmless = {name: edit for name, edit in EDITS.items() if edited(old, {name: edit})[1]}
    removed = {}
    for stack in old.stacks:
        resources = stack.template.body["Resources"]
        for name, each in resources.items():
            for path in removable({"Properties": {}, **each}, resources):
                removed[f"{stack.name}: {name}.{'.'.join(map(str, path))}"] = partial(
                    _without_reference, name, path
                )
    return {**_spread(harmless, count // 2), **_spread(removed, count // 2)}


def _spread(edits: Mapping[str, Edit], count: int) -> dict[str, Edit]:
    every = list(edits.items())
    return dict(every[len(every) * place // count] for place in range(min(count, len(every))))


def _without_reference(name: str, path: tuple[str | int, ...], body: Body) -> bool:
    try:
        remove(body["Resources"][name]["Properties"], path)
    except (KeyError, IndexError):
        return False  # another stack
    return True
