"""What `make` checks before it installs anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[2] / "dev" / "check_system.py"


def _check(path: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        [sys.executable, CHECK, *options],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def _fake_program(directory: Path, name: str, output: str) -> None:
    program = directory / name
    program.write_text(f"#!/bin/sh\necho {output}\n")
    program.chmod(0o755)


def test_nothing_is_missing() -> None:
    """On a machine that runs the tests, nothing is reported missing."""
    run = _check(os.environ["PATH"])
    assert (run.returncode, run.stderr) == (0, "")


def test_missing_node(tmp_path: Path) -> None:
    """Without Node.js the check fails and names the command that installs it."""
    run = _check(str(tmp_path))
    assert run.returncode == 1
    assert (
        "missing: Node.js, needed for the CDK; install it with: apt-get install nodejs npm"
        in run.stderr
    )


def test_checker_needs_no_node(tmp_path: Path) -> None:
    """The environment, and with it the tests of most packages, does without Node.js."""
    assert _check(str(tmp_path), "--without-node").returncode == 0


@pytest.mark.parametrize(
    ("version", "is_fine"), [("v16.20.2", False), ("v18.19.0", True), ("v24.1.0", True)]
)
def test_node_version(tmp_path: Path, version: str, is_fine: bool) -> None:
    """A Node.js version that the CDK does not support is refused,
    and the message contains the version.
    """
    _fake_program(tmp_path, "node", version)
    _fake_program(tmp_path, "npm", "11.0.0")
    run = _check(f"{tmp_path}:/usr/sbin:/sbin:/usr/bin:/bin")
    assert (run.returncode == 0) is is_fine
    assert (f"got {version}" in run.stderr) is not is_fine
