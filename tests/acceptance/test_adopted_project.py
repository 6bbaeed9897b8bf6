"""The folder that ``constructs-triton adopt`` writes, as its owner uses it: tests, formatter, synthesis."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from notebook_endpoints import ENDPOINTS, NotebookEndpoint, create, prepare_account
from programs import run_command

from cdk_rehearse import SimulatedAccount

BUDGET_MINUTES = 1


@pytest.mark.parametrize("endpoint", ENDPOINTS[:2], ids=lambda each: each.name)
def test_tests_of_an_adopted_project(endpoint: NotebookEndpoint, tmp_path: Path) -> None:
    """The command synthesizes what it writes, and the written test records a snapshot and compares."""
    with SimulatedAccount() as aws:
        prepare_account(aws)
        for key in endpoint.archives:
            (tmp_path / key).parent.mkdir(parents=True)
        create(aws, endpoint, tmp_path)
        app = tmp_path / "app"
        run_command(
            "adopt", endpoint.name, "-o", str(app), "--switch", "import", environment=aws.environment()
        )
    pytest_of_app(app, "--snapshot-update")
    assert (app / "tests" / "__snapshots__").is_dir()
    pytest_of_app(app)


def pytest_of_app(app: Path, *options: str) -> None:
    """Run the tests of an app; they pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=app, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
