"""A local run in an environment with NumPy 2 and without nvidia-pytriton, as users have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from environments import environment
from triton_server import needs_server

PROJECT = Path(__file__).resolve().parents[2]
MEMBERS = ("core", "check", "client", "rehearse")
CONFIG = """name: "versions"
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_STRING dims: 1 }
"""
MODEL = """import numpy
import sklearn
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        versions = f"{numpy.__version__} {sklearn.__version__}".encode()
        answer = pb_utils.Tensor("y", numpy.array([versions], dtype=object))
        return [pb_utils.InferenceResponse([answer]) for _ in requests]
"""
OFFLINE = {"UV_OFFLINE": "1", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with this library, its extra ``local``, NumPy 2 and a package for models."""
    members = [str(PROJECT / "packages" / name) for name in MEMBERS]
    packages = [*members, f"{PROJECT}[local]", "numpy>=2", "scikit-learn"]
    folder = tmp_path_factory.mktemp("environments")
    return environment("numpy2", packages, folder, with_uv=True)


def answer(python: Path, models: Path, variables: dict[str, str]) -> tuple[str, str]:
    """Run the model until it has answered once; return the answer and what was printed before."""
    command = [str(python.parent / "constructs-triton"), "local", "up", str(models), "--port", "0"]
    with (models.parent / "log").open("w+") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **variables}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            text = wait_until_ready(process, Path(log.name))
            return call(text), text
        finally:
            process.terminate()
            process.wait()


def wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(600):
        text = log.read_text()
        if "ready" in text:
            return text
        assert process.poll() is None, text
        time.sleep(0.5)
    raise AssertionError(log.read_text())


def call(text: str) -> str:
    url = next(word for word in text.split() if word.endswith("/invocations"))
    data: dict[str, Any] = {"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}
    request = urllib.request.Request(
        url, json.dumps({"inputs": [data]}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return str(json.load(response)["outputs"][0]["data"][0])


@needs_server
def test_the_first_run_installs_the_server_and_the_next_needs_no_network(
    python: Path, tmp_path: Path
) -> None:
    """Models get NumPy 1 and the user's own packages; the second run installs nothing."""
    if sys.version_info >= (3, 13):
        pytest.skip("NumPy below 2 has no wheels for Python 3.13")
    model = tmp_path / "models" / "versions"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG)
    (model / "1" / "model.py").write_text(MODEL)
    cache = {"CONSTRUCTS_TRITON_CACHE_DIR": str(tmp_path / "cache")}

    versions, printed = answer(python, tmp_path / "models", cache)
    assert versions.startswith("1.26.")
    assert printed.count("once") == 2

    again, printed = answer(python, tmp_path / "models", {**cache, **OFFLINE})
    assert again == versions
    assert "installing" not in printed
