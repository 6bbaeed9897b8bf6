"""Prints the figures of the project, each beside its limit: ``make figures``.

Tests and benchmarks calculate nearly all of them, and have the limits. This package calls their
functions.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
# Tests import each other by their names alone.
FOLDERS = (
    *SETTINGS["pytest"]["ini_options"]["pythonpath"],
    *(
        "tests/project",
        "tests/acceptance",
        "tests/unit/cli",
        "packages/check/tests/property",
        "benchmarks",
    ),
)
sys.path.extend(str(PROJECT / folder) for folder in FOLDERS)
