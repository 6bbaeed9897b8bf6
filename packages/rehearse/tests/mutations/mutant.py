"""A generated edit: two versions of templates, and what AWS does with the second."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cdk_rehearse.errors import TemplateError
from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import NONE, Request, StackVersion, Version
from constructs_triton_core.cloud_assembly.template import Template

Body = dict[str, Any]
"""A template as JSON."""
Stacks = Mapping[str, Body]
"""Templates by the name of their stack, in the order of deployment."""
Verdict = Literal["wrong", "harmless", "not simulated"]

PLATFORM = "acme-platform"
"""A bucket that exists before the stacks, with archives; a template may still set its policy."""
ARCHIVES = ("one.tar.gz", "two.tar.gz")
UPDATE_FAILS = "rehearse-update-fails"
MAY_FAIL = "rehearse-update-may-fail"
COLLISION = "rehearse-name-collision"
READERS = ("rehearse-reader-loses-access", UPDATE_FAILS)
DATA = ("rehearse-data-loses-access", *READERS)
INVALID = "invalid template"
"""In place of a code: the rehearsal does not begin,
because NEW is no template that CloudFormation takes.
"""


class Rule(NamedTuple):
    """What AWS does with an edit, its source, and the problems of which one must be reported."""

    verdict: Verdict
    source: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutant:
    """One edit.

    Args:
        kind: The family of edits, a row of the table.
        name: What is edited, and how.
        old: The deployed stacks; ``None`` before the first deployment.
        new: The edited stacks.
        verdict: ``wrong`` if AWS refuses it or something that the endpoint needs is lost,
            ``harmless`` if AWS carries it out and nothing is lost, ``not simulated`` if a rehearsal
            makes no statement about it.
        source: The rule behind the verdict; for ``not simulated``, what the rehearsal does not
            know.
        codes: Of these problems, at least one must be reported. Default: any.
        orders: Orders of independent resources to try.
    """

    kind: str
    name: str
    old: Stacks | None
    new: Stacks
    verdict: Verdict
    source: str
    codes: tuple[str, ...] = ()
    orders: int = 1


@dataclass(frozen=True)
class Result:
    """A mutant, and the codes of what was reported; ``detail`` is the text."""

    mutant: Mutant
    codes: tuple[str, ...]
    detail: str
    has_errors: bool = False

    @property
    def is_right(self) -> bool:
        """Whether a wrong edit was reported, and a harmless one was not."""
        if self.mutant.verdict == "harmless":
            return not self.codes
        wanted = set(self.mutant.codes)
        return bool(wanted & set(self.codes) if wanted else self.codes)


def assess(mutant: Mutant, assets: Path) -> Result:
    """Rehearse a mutant without failures; ``assets`` is an empty folder,
    or one of :func:`write_assets`.
    """
    old = NONE if mutant.old is None else _version(mutant.old, assets)
    new = NONE if mutant.new is None else _version(mutant.new, assets)
    try:
        found = simulate(Request(old, new, {}, "none", mutant.orders))
    except TemplateError as error:
        if str(error).startswith("OLD"):
            raise AssertionError(f"{mutant.kind} {mutant.name}: {error}") from None
        return Result(mutant, (INVALID,), str(error), has_errors=True)
    codes = tuple(sorted({problem.code for problem in found.problems}))
    return Result(mutant, codes, _detail(found), bool(found.errors))


def _detail(found: Rehearsal) -> str:
    """The problems of a rehearsal, or its end if it has none."""
    if not found.problems:
        return f"{dict(found.status)} {found.reason} {len(found.steps)} steps"
    problems = [f"{problem.code} {problem.path}: {problem.message}" for problem in found.problems]
    return "; ".join(problems)


def _version(stacks: Stacks, assets: Path) -> Version:
    return Version(
        tuple(
            StackVersion(name, Template(body), write_assets(assets), names=frozenset({name}))
            for name, body in stacks.items()
        )
    )


@cache
def write_assets(folder: Path) -> Path:
    """Write a cloud assembly without stacks, whose assets are the archives."""
    files = {}
    for name in ARCHIVES:
        (folder / name).write_bytes(name.encode())
        destination = {"current": {"bucketName": PLATFORM, "objectKey": f"models/{name}"}}
        files[name] = {"source": {"path": name, "packaging": "file"}, "destinations": destination}
    (folder / "S.assets.json").write_text(json.dumps({"version": "1", "files": files}))
    assets = {"type": "cdk:asset-manifest", "properties": {"file": "S.assets.json"}}
    (folder / "manifest.json").write_text(
        json.dumps({"version": "36.0.0", "artifacts": {"S.assets": assets}})
    )
    return folder


def template(resources: Mapping[str, Any], **sections: Any) -> Body:
    """A template with these resources and further sections."""
    return {"Resources": dict(resources), **sections}
