"""Runs the apps of a guide, and returns what they deploy."""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import aws_cdk as cdk
from programs import PROJECT

_BLOCK = re.compile(r"^```(python|py)( title=\"app\.py\")?\n(.+?)^```", re.MULTILINE | re.DOTALL)


def programs_of(page: str) -> list[str]:
    """Return the programs of a page: each ``python`` block with the ``py``
    blocks that continue it.
    """
    programs: list[str] = []
    for kind, _, code in _BLOCK.findall((PROJECT / "docs" / "guides" / page).read_text()):
        programs += [code] if kind == "python" else []
        programs[-1] += "" if kind == "python" else code
    return programs


def templates_of(code: str, folder: Path) -> dict[str, Any]:
    """Run an app in a folder with the models of the guides, and return its templates by stack."""
    if not (folder / "models").exists():
        shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", folder / "models")
    outdir = folder / "cdk.out"
    names: dict[str, Any] = {"__name__": "__main__"}
    app = partial(cdk.App, builtin_cloud_formation_validation=False, outdir=str(outdir))
    with mock.patch.object(cdk, "App", app):
        exec(compile(code, "app.py", "exec"), names)
    names["app"].synth()
    found = outdir.rglob("*.template.json")
    return {
        path.name.removesuffix(".template.json"): json.loads(path.read_text()) for path in found
    }
