"""The app that ``adopt`` writes: it takes over a running endpoint by default,
and has tests of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from described_endpoints import changed_paths, describe
from notebook_endpoints import ENDPOINTS, NotebookEndpoint, create, prepare_account
from programs import run_command
from synthesized_adoption import ARTIFACT, synthesize

from cdk_rehearse import SimulatedAccount

BUDGET_MINUTES = 2

#: An ensemble, a model on two instances, and a scaled multi-model endpoint.
TAKEN_OVER = (ENDPOINTS[1], ENDPOINTS[4], ENDPOINTS[6])


@pytest.mark.parametrize("endpoint", TAKEN_OVER, ids=lambda each: each.name)
def test_endpoint_is_taken_over(endpoint: NotebookEndpoint, tmp_path: Path) -> None:
    """The endpoint keeps its ARN and its instances, differs as the report says,
    and outlives the stack.
    """
    with SimulatedAccount() as aws:
        prepare_account(aws)
        take_over(aws, endpoint, tmp_path)
    words = ("rehearse", "none", str(tmp_path / "assembly"), "--orders", "1")
    assert "0 errors, 0 warnings." in run_command(*words, environment=os.environ)


def take_over(aws: SimulatedAccount, endpoint: NotebookEndpoint, tmp_path: Path) -> None:
    """Adopt the endpoint of a notebook, deploy the app, and delete its stack."""
    create(aws, endpoint, tmp_path)
    before, arn = describe(aws, endpoint.name), arn_of(aws, endpoint)
    words = ["adopt", endpoint.name, "-o", str(tmp_path / "app"), "--no-synth", "--json"]
    adoption = json.loads(run_command(*words, environment=aws.environment()))
    synthesize(tmp_path / "app", tmp_path / "assembly")
    stack = aws.deploy(tmp_path / "assembly", ARTIFACT)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    named = {each["path"] for each in adoption["differences"]}
    assert changed_paths(before, describe(aws, endpoint.name)) == named
    assert (arn_of(aws, endpoint), aws.fleets.losses) == (arn, [])
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE"
    assert arn_of(aws, endpoint) == arn


def arn_of(aws: SimulatedAccount, endpoint: NotebookEndpoint) -> str:
    return str(aws.client("sagemaker").describe_endpoint(EndpointName=endpoint.name)["EndpointArn"])


@pytest.mark.parametrize("endpoint", ENDPOINTS[:2], ids=lambda each: each.name)
def test_tests_of_an_adopted_project(endpoint: NotebookEndpoint, tmp_path: Path) -> None:
    """The command synthesizes what it writes, and the written test records
    a snapshot and compares.
    """
    with SimulatedAccount() as aws:
        prepare_account(aws)
        create(aws, endpoint, tmp_path)
        app = tmp_path / "app"
        run_command(
            "adopt",
            endpoint.name,
            "-o",
            str(app),
            "--switch",
            "import",
            environment=aws.environment(),
        )
    pytest_of_app(app, "--snapshot-update")
    assert (app / "tests" / "__snapshots__").is_dir()
    pytest_of_app(app)


def pytest_of_app(app: Path, *options: str) -> None:
    """Run the tests of an app; they pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        command, cwd=app, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
