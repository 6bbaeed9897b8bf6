"""Installs an ONNX Runtime in a folder, and runs a program with it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any


def install(folder: Path, version: str, python: str) -> Path:
    """Return the folder of a version below ``folder``, which is installed once from PyPI."""
    installed = folder / version
    if not installed.is_dir():
        pip = [python, "-m", "pip", "install", "--quiet", "--target", str(installed)]
        # Releases of 2024 and before do not import with NumPy 2.
        subprocess.run([*pip, f"onnxruntime=={version}", "numpy<2"], check=True)
    return installed


def run(installed: Path, program: Path, python: str, *arguments: str) -> Any:
    """Return what a program prints as JSON, which imports the packages of a folder."""
    done = subprocess.run(
        [python, str(program), *arguments],
        env={**os.environ, "PYTHONPATH": str(installed)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
