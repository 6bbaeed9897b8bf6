"""The published systems, each synthesized once per test run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from constructs_triton.testing import stable_template

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "published_systems"


@cache
def templates(example: str) -> dict[str, dict[str, Any]]:
    """Return the stable templates of an example by stack, which ``cdk synth`` writes and validates."""
    context = json.loads((EXAMPLES / example / "cdk.json").read_text())["context"]
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "cdk.out"
        environment = {**os.environ, "CDK_OUTDIR": str(directory), "CDK_CONTEXT_JSON": json.dumps(context)}
        subprocess.run([sys.executable, "app.py"], cwd=EXAMPLES / example, env=environment, check=True)
        return {
            path.name.removesuffix(".template.json"): stable_template(path)
            for path in directory.glob("*.template.json")
        }
