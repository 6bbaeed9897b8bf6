"""Requests that are recorded from a local endpoint and sent to it again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from local_assembly import AssemblyBuilder, adding_model, below
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_diagnosis")]


def _assembly(folder: Path, constant: float) -> Path:
    builder = AssemblyBuilder(folder / "cdk.out")
    builder.single_model("Model", builder.asset("m", below("m", adding_model(constant))))
    builder.single_model("Next", builder.asset("next", below("m", adding_model(constant + 1))))
    builder.endpoint("Adding", {"AllTraffic": ("Model", 1), "Next": ("Next", 0)})
    return builder.write()


MIXING_MODEL = """
import time
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        x = [pb.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        time.sleep(0.02)
        mean = np.concatenate(x).mean()
        return [pb.InferenceResponse([pb.Tensor("Y", (each - mean).astype(np.float32))]) for each in x]
"""
MIXING_CONFIG = """
backend: "python" max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 2000 }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""


def test_a_model_that_mixes_a_batch_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each request alone is answered as recorded, and Triton's batches of several show the fault."""
    folder = tmp_path / "models" / "mixing"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(MIXING_MODEL)
    (folder / "config.pbtxt").write_text(MIXING_CONFIG)
    file = str(tmp_path / "requests.json")
    with LocalEndpoint.from_repository(tmp_path / "models", endpoint="mixing") as local:
        where = ("--endpoint-url", local.endpoint_url)
        for value in ("X=1,2:FP32", "X=5,9:FP32"):
            assert main(["invoke", "mixing", "--input", value, "--batch", "--record", file, *where]) == 0
        assert main(["verify", "mixing", file, *where]) == 0
        capsys.readouterr()
        assert main(["verify", "mixing", file, "--concurrency", "8", *where]) == 1
    out = capsys.readouterr().out
    assert "together with other requests: output Y: 2 of 2 values differ" in out
    assert "a model mixes the requests of a batch" in out


def test_a_recorded_response_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same variant answers equally; another one differs, and `local up --verify` exits with 1."""
    file = tmp_path / "requests.json"
    with LocalEndpoint.from_assembly(_assembly(tmp_path / "first", 1)) as local:
        where = ("--endpoint-url", local.endpoint_url)
        assert main(["invoke", "Adding", "--input", "X=1,2:FP32", "--record", str(file), *where]) == 0
        assert main(["verify", "Adding", str(file), *where]) == 0
        assert capsys.readouterr().out.endswith("request-1: equal\n0 of 1 responses differ\n")
        assert main(["verify", "Adding", str(file), "--target-variant", "Next", *where]) == 1
        assert "the first at 0: must be 2.0, got 3.0" in capsys.readouterr().out
    (request,) = json.loads(file.read_text())["requests"]
    assert request["outputs"][0]["data"] == [2.0, 3.0]
    up = [sys.executable, "-m", "constructs_triton.cli", "local", "up"]
    words = [*up, str(_assembly(tmp_path / "second", 5)), "--port", "0", "--verify", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "output Y: 2 of 2 values differ, the first at 0: must be 2.0, got 6.0" in done.stdout
