"""The programs for the SageMaker SDK: they run with sagemaker-core,
in an environment of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import environment
from simulated_jobs import ROLE, SimulatedJobs, simulated_jobs, write_onnx
from test_sagemaker_sdk import write_doubling_model
from triton_server import needs_server
from workspace import PACKAGES

from constructs_triton.cli import main
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.model_files import describe

BUDGET_MINUTES = 3
GUIDES = Path(__file__).parents[2] / "docs" / "guides" / "works_with"
PROGRAMS = {
    f"{name}.py": (GUIDES / f"sagemaker_{name}.py").read_text() for name in ("build", "predict")
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(
        "sagemaker_core", ["sagemaker-core>=2.27,<3"], tmp_path_factory.mktemp("sdk")
    )


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedJobs]:
    monkeypatch.chdir(tmp_path)
    with simulated_jobs(tmp_path / "jobs", monkeypatch) as simulated:
        yield simulated


def run_program(python: Path, name: str, folder: Path, **variables: str) -> str:
    (folder / name).write_text(PROGRAMS[name])
    # The environment of the SDK has its own packages, and writes its settings below the home
    # folder.
    given = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), name],
        cwd=folder,
        env={**given, **variables, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sdk_runs_the_job_of_a_dry_run(
    python: Path, jobs: SimulatedJobs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The SDK's shapes accept the request that is printed,
    and the program of the page downloads the plan.
    """
    write_onnx(tmp_path / "bert.onnx")
    words = (
        f"--instance-type ml.g4dn.xlarge --max-batch-size 16 --role {ROLE} --bucket plans --dry-run"
    )
    assert main(["compile", "bert.onnx", *words.split(), "--json"]) == 0
    (tmp_path / "job.json").write_text(capsys.readouterr().out)
    printed = run_program(python, "build.py", tmp_path)
    assert "Completed" in printed
    assert describe(tmp_path / "model.plan").versions == {"tensorrt": "10.16.1.11"}
    (sent,) = jobs.requests.values()
    assert sent == json.loads((tmp_path / "job.json").read_text())["jobs"][0]["request"]


@needs_server
def test_sdk_calls_a_local_endpoint(python: Path, tmp_path: Path) -> None:
    """The program of the page prints the response of the endpoint."""
    models = write_doubling_model(tmp_path / "models", "bert", "INPUT__0")
    with LocalEndpoint.from_repository(models, endpoint="bert") as local:
        url = {"AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": local.endpoint_url}
        printed = run_program(python, "predict.py", tmp_path, **url)
    assert printed.splitlines()[-1] == "[3.0, 4.0]"


TOKENS = """
import sys
sys.path[:0] = sys.argv[1:]
from botocore.credentials import Credentials
from constructs_triton_client.transports.bearer_token import sign_bearer_token
from sagemaker.core.token_generator.token_generator import _generate_token

for session in (None, "session/token+="):
    credentials = Credentials("AKIDEXAMPLE", "secret", session)
    for seconds in (1, 3600, 43_200):
        for _ in range(5):  # both in the same second
            makers = sign_bearer_token, _generate_token
            tokens = [make(credentials, "eu-west-1", seconds) for make in makers]
            if tokens[0] == tokens[1]:
                break
        assert tokens[0] == tokens[1], tokens
"""


def test_bearer_token_is_that_of_the_sdk(python: Path) -> None:
    """Byte for byte, with and without a session token."""
    sources = [
        str(PACKAGES[name].root.parent)
        for name in ("constructs_triton_client", "constructs_triton_core")
    ]
    done = subprocess.run(
        [str(python), "-c", TOKENS, *sources], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
