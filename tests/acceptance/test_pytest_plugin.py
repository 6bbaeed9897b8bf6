"""The pytest plugin in a test run of a user: fixtures, options, skips and failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from local_assembly import AssemblyBuilder, adding_model, below
from triton_server import needs_server

from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 1

TESTS = """
import numpy as np
import pytest

X = {"X": np.array([1], np.float32)}


def test_answer(triton_client):
    assert triton_client.infer(X)["Y"].tolist() == [11]


def test_run(triton_local_endpoint):
    assert triton_local_endpoint.endpoint_names == ("ten",)
"""
MANY = """
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture(scope="module")
def triton_app():
    return SimpleNamespace(synth=lambda: SimpleNamespace(directory="cdk.out"))


def test_answer(triton_client):
    result = triton_client.infer({"X": np.array([1], np.float32)}, TargetModel="hundred")
    assert result["Y"].tolist() == [101]


def test_unknown_name(triton_client):
    with pytest.raises(ValueError, match='has 60 models, .* "tenan57"; did you mean "tenant57"'):
        triton_client.archive_of("tenan57")
"""
UNAVAILABLE = """
import pytest


@pytest.fixture(scope="module")
def triton_local_options():
    return {"tritonserver": "/nowhere/tritonserver"}


def test_answer(triton_client):
    raise AssertionError
"""
DEPLOYED = """
def test_client(triton_client):
    assert triton_client.transport.endpoint_name == "live"
"""


def run_pytest(folder: Path, test: str, *options: str) -> str:
    """Run a test file with the plugin in a folder, and return what pytest prints."""
    (folder / "test_shop.py").write_text(test)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-rs",
        "-p",
        "constructs_triton.testing.plugin",
        *options,
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    return done.stdout + done.stderr


def write_assembly(folder: Path) -> Path:
    """Write an assembly with the endpoints ``ten`` and ``many``."""
    builder = AssemblyBuilder(folder / "cdk.out")
    builder.serve("Ten", below("m", adding_model(10)), "ten")
    hundred = builder.asset("hundred", below("m", adding_model(100)))
    names = ("hundred", *(f"tenant{number:02}" for number in range(1, 60)))
    archives = {f"{name}-3f9c2a1b.tar.gz": hundred for name in names}
    builder.multi_model("Many", archives)
    builder.endpoint("ManyEndpoint", {"AllTraffic": ("Many", 1)}, name="many")
    builder.write()
    return folder


@needs_server
def test_fixtures_run_and_call_the_endpoint(tmp_path: Path) -> None:
    """The endpoint of ``cdk.out`` or of an app runs once for a module;
    archives are called by model.
    """
    write_assembly(tmp_path)
    assert "2 passed" in run_pytest(tmp_path, TESTS, "--triton-endpoint=ten")
    assert "2 passed" in run_pytest(tmp_path, MANY, "--triton-endpoint=many")


@needs_server
def test_same_tests_pass_for_a_deployed_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a test accepts, the endpoint of --triton-deployed accepts,
    here one behind AWS's address.
    """
    write_assembly(tmp_path)
    with LocalEndpoint.from_assembly(tmp_path / "cdk.out", endpoint="many") as deployed:
        monkeypatch.setenv("AWS_ENDPOINT_URL", deployed.endpoint_url)
        options = ("--triton-deployed=many", "--triton-region=eu-west-1")
        assert "2 passed" in run_pytest(tmp_path, MANY, *options)


def test_tests_are_skipped_where_the_server_cannot_run(tmp_path: Path) -> None:
    """Tests are skipped with the reason, and fail with --triton-require-server."""
    skipped = run_pytest(tmp_path, UNAVAILABLE)
    assert "1 skipped" in skipped
    assert "the Triton server cannot run" in skipped
    assert "/nowhere/tritonserver" in skipped
    assert "1 error" in run_pytest(tmp_path, UNAVAILABLE, "--triton-require-server")


def test_deployed_endpoint_is_called_instead(tmp_path: Path) -> None:
    """With --triton-deployed, the client calls AWS and no endpoint runs."""
    assert "1 passed" in run_pytest(
        tmp_path, DEPLOYED, "--triton-deployed=live", "--triton-region=eu-west-1"
    )
