"""Python environments for packages that cannot be in the environment of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def environment(name: str, packages: Sequence[str], folder: Path) -> Path:
    """Return a Python that has the packages; skip the test if pip does not find them.

    CONSTRUCTS_TRITON_ENVIRONMENTS names a folder with environments that are used again.
    """
    kept = os.environ.get("CONSTRUCTS_TRITON_ENVIRONMENTS")
    python = Path(kept or folder, f"env_{name}", "bin", "python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*install, *packages], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"pip does not install {' '.join(packages)}: {done.stderr.strip()[-300:]}")
    return python
