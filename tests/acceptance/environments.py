"""Python environments for packages that cannot be in the environment of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def environment(name: str, packages: Sequence[str], folder: Path, *, with_uv: bool = False) -> Path:
    """Return a Python that has the packages; skip the test if pip does not find them.

    uv takes seconds where pip takes minutes, but does not read pip's settings, such as where the
    wheels of PyTorch without CUDA are. If it fails, pip installs.

    CONSTRUCTS_TRITON_ENVIRONMENTS names a folder with environments that are used again.
    """
    kept = os.environ.get("CONSTRUCTS_TRITON_ENVIRONMENTS")
    python = Path(kept or folder, f"env_{name}", "bin", "python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        uv = [sys.executable, "-m", "uv", "pip", "install", "--python", str(python)]
        pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
        settings = {**os.environ, "UV_SYSTEM_CERTS": "true"}
        for install in (uv, pip) if with_uv else (pip,):
            command = [*install, "--quiet", *packages]
            done = subprocess.run(
                command, env=settings, capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                return python
        pytest.skip(f"pip does not install {' '.join(packages)}: {done.stderr.strip()[-300:]}")
    return python
