"""Each benchmark runs by itself from the root of a clone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", sorted(path.name for path in PROJECT.glob("benchmarks/*.py")))
def test_a_benchmark_says_what_it_measures(name: str) -> None:
    """It imports what it needs without an import path of the caller, and has a help."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}", "--help"],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {name}")
