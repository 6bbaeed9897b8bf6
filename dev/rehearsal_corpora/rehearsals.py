"""Rehearses an app: its first deployment, itself, harmless edits and wrong edits."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cdk_rehearse import rehearse
from cdk_rehearse.providers import is_custom
from cdk_rehearse.providers.provider import Provider
from cdk_rehearse.updates.report import Rehearsal
from constructs_triton_core.errors import ConstructsTritonError

from .edits import HARMLESS, WRONG, Edit


@dataclass(frozen=True)
class Verdict:
    """What the rehearsals of one app showed.

    Args:
        resources: Number of resources in its templates.
        simulated: How many of them are of a type that the rehearsal simulates.
        false_stops: Each rehearsal that must be silent and is not, with what it reported.
        wrong_found: Wrong edits that were reported.
        wrong_missed: Wrong edits that were not.
        seconds: How long all of it took.
    """

    resources: int
    simulated: int
    false_stops: tuple[str, ...] = ()
    wrong_found: tuple[str, ...] = ()
    wrong_missed: tuple[str, ...] = ()
    seconds: float = 0.0


def assess(app: Path) -> Verdict:
    """Rehearse an app, and return what must not be and what was found."""
    begun = time.monotonic()
    stops = [*_of_the_first_deployment(app)]
    found: list[str] = []
    missed: list[str] = []
    if not stops:
        stops += _of_the_same(app)
        stops += _of_harmless_edits(app)
        for name, edit in WRONG.items():
            with _edited(app, {name: edit}) as new:
                if new is not None:
                    (found if _is_reported(app, new) else missed).append(name)
    return Verdict(
        *_counts(app),
        tuple(stops),
        tuple(found),
        tuple(missed),
        round(time.monotonic() - begun, 1),
    )


def _of_the_first_deployment(app: Path) -> Iterator[str]:
    found = _rehearsed(None, app)
    if isinstance(found, str):
        yield f"first deployment: {found}"
        return
    yield from (f"first deployment: {problem}" for problem in found.errors)


def _of_the_same(app: Path) -> Iterator[str]:
    found = _rehearsed(app, app)
    if isinstance(found, str):
        yield f"unchanged: {found}"
        return
    yield from (f"unchanged: {step.action} {step.type}" for step in found.steps)
    yield from (f"unchanged: {problem}" for problem in found.problems)


def _of_harmless_edits(app: Path) -> Iterator[str]:
    """All of them at once; if there is an error, one by one."""
    if not [*_errors_of(app, HARMLESS)]:
        return
    for name, edit in HARMLESS.items():
        yield from _errors_of(app, {name: edit})


def _errors_of(app: Path, edits: dict[str, Edit]) -> Iterator[str]:
    with _edited(app, edits) as new:
        if new is None:
            return
        found = _rehearsed(app, new)
        texts = [found] if isinstance(found, str) else [str(each) for each in found.errors]
        yield from (f"{' and '.join(edits)}: {text}" for text in texts)


def _is_reported(app: Path, new: Path) -> bool:
    found = _rehearsed(app, new)
    return isinstance(found, str) or bool(found.problems)


def _rehearsed(old: Path | None, new: Path) -> Rehearsal | str:
    """The rehearsal, or why there is none."""
    try:
        return rehearse(old, new, failures="none", orders=1)
    except (ConstructsTritonError, RuntimeError) as error:
        return str(error)


@contextmanager
def _edited(app: Path, edits: dict[str, Edit]) -> Iterator[Path | None]:
    """A copy of the assembly with edited templates; ``None`` if there is nothing to edit."""
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / "new.out"
        shutil.copytree(app, new)
        applied = [_edit_file(path, edits) for path in new.rglob("*.template.json")]
        yield new if any(applied) else None


def _edit_file(path: Path, edits: dict[str, Edit]) -> bool:
    body = json.loads(path.read_text(encoding="utf-8"))
    if not body.get("Resources"):
        return False
    applied = [edit(body) for edit in edits.values()]
    path.write_text(json.dumps(body), encoding="utf-8")
    return any(applied)


def _counts(app: Path) -> tuple[int, int]:
    types = [
        resource["Type"]
        for path in app.rglob("*.template.json")
        for resource in json.loads(path.read_text(encoding="utf-8")).get("Resources", {}).values()
    ]
    return len(types), sum(_is_simulated(each) for each in types)


def _is_simulated(type: str) -> bool:
    return type in Provider.by_type or is_custom(type)
