"""Python environments for packages that cannot be in the environment of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def environment(name: str, packages: Sequence[str], folder: Path) -> Path:
    """Return a Python that has the packages; skip the test if neither uv nor pip finds them.

    CONSTRUCTS_TRITON_ENVIRONMENTS names a folder with environments that are used again.
    """
    kept = os.environ.get("CONSTRUCTS_TRITON_ENVIRONMENTS")
    python = Path(kept or folder, f"env_{name}", "bin", "python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        # uv takes seconds where pip takes minutes. Where only pip knows the package index, pip installs.
        uv = [sys.executable, "-m", "uv", "pip", "install", "--python", str(python)]
        pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
        settings = {**os.environ, "UV_SYSTEM_CERTS": "true"}
        for install in (uv, pip):
            command = [*install, "--quiet", *packages]
            done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return python
        pytest.skip(f"pip does not install {' '.join(packages)}: {done.stderr.strip()[-300:]}")
    return python
