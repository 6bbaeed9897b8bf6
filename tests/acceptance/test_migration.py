"""The apps of docs/guides/migrating.md: an endpoint of hand-written L1s stays when the constructs change."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stack_view import StackView

from constructs_triton.rehearsal import SimulatedAccount

BUDGET_MINUTES = 2
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("budget")]

PROJECT = Path(__file__).resolve().parents[2]
STACK = "Vision"


def synthesize(folder: Path, name: str, code: str) -> Path:
    """Run a block of the page, and return the assembly that it writes."""
    (folder / f"{name}.py").write_text(code)
    environment = {**os.environ, "CDK_OUTDIR": str(folder / name)}
    subprocess.run([sys.executable, f"{name}.py"], cwd=folder, env=environment, check=True)
    return folder / name


def test_endpoint_stays_while_its_constructs_are_replaced(tmp_path: Path) -> None:
    """The update keeps the endpoint and its name, and deletes the old model, configuration and role."""
    shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", tmp_path / "models")
    page = (PROJECT / "docs" / "guides" / "migrating.md").read_text()
    before, after = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[:2]
    with SimulatedAccount() as aws:
        aws.bootstrap()
        view = StackView(aws, STACK)
        aws.deploy(synthesize(tmp_path, "before", before), STACK)
        assert view.stack.status == "CREATE_COMPLETE", view.stack.reason
        old = aws.client("sagemaker").describe_endpoint(EndpointName="digits")
        aws.deploy(synthesize(tmp_path, "after", after), STACK)
        assert view.stack.status == "UPDATE_COMPLETE", view.stack.reason
        new = aws.client("sagemaker").describe_endpoint(EndpointName="digits")
    assert (new["EndpointName"], new["EndpointArn"]) == ("digits", old["EndpointArn"])
    assert new["CreationTime"] == old["CreationTime"]
    assert new["EndpointConfigName"] != old["EndpointConfigName"]
