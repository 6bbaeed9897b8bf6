"""Synthesizes an app that ``constructs-triton adopt`` wrote, in the process of the tests."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import aws_cdk as cdk

ARTIFACT = "Endpoint"


def synthesize(app: Path, assembly: Path) -> cdk.Stack:
    """Write the assembly of the app in a folder; its template is not validated by the CDK again."""
    module: dict[str, Any] = runpy.run_path(str(app / "app.py"))
    context = json.loads((app / "cdk.json").read_text())["context"]
    root = cdk.App(outdir=str(assembly), context=context, builtin_cloud_formation_validation=False)
    stack: cdk.Stack = module["EndpointStack"](root, ARTIFACT)
    root.synth()
    return stack
