"""The published systems, each synthesized once per test run."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from programs import synthesize_app

from constructs_triton.testing import stable_template

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "published_systems"


@cache
def templates(example: str) -> dict[str, dict[str, Any]]:
    """Return the stable templates of an example by stack,
    which ``cdk synth`` writes and validates.
    """
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "cdk.out"
        synthesize_app(EXAMPLES / example / "app.py", directory)
        return {
            path.name.removesuffix(".template.json"): stable_template(path)
            for path in directory.glob("*.template.json")
        }
