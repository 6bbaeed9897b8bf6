"""The app of the README's first screen: what its template contains, and a drawing of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from constructs_triton.cli import main

PROJECT = Path(__file__).parents[2]
README = PROJECT / "README.md"
MODELS = (
    PROJECT / "packages/tools/src/constructs_triton_tools/cli/project/examples/multi-model/models"
)
PICTURE = "first_app.svg"
_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def program() -> str:
    """Return the first Python block of the README."""
    found = _PROGRAM.search(README.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(
            f"{README}: has no Python block; write the app of the first screen into it"
        )
    return found[1]


@contextmanager
def synthesized() -> Iterator[Path]:
    """Run the app with the models of the multi-model example, and yield its assembly's folder."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(MODELS, folder / "models")
        (folder / "app.py").write_text(program(), encoding="utf-8")
        environment = {
            **os.environ,
            "CDK_OUTDIR": str(folder / "cdk.out"),
            "CDK_VALIDATION": "false",  # takes seconds, and is not about the drawing
        }
        command = [sys.executable, "app.py"]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        yield folder / "cdk.out"


def resource_types() -> Counter[str]:
    """Count the resources of the app's template by their types."""
    with synthesized() as assembly:
        (template,) = assembly.glob("*.template.json")
        resources = json.loads(template.read_text(encoding="utf-8"))["Resources"]
    return Counter(resource["Type"] for resource in resources.values())


def write_first_app(folder: Path) -> None:
    """Draw what the endpoint of the app serves, as ``constructs-triton graph`` does."""
    folder.mkdir(parents=True, exist_ok=True)
    with synthesized() as assembly:
        main(["graph", str(assembly), "--output", str(folder / PICTURE)])
