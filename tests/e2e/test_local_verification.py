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

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]


def test_a_model_that_mixes_a_batch_is_found(
    shared: LocalEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each request alone is answered as recorded,
    and Triton's batches of several show the fault.
    """
    file = str(tmp_path / "requests.json")
    where = ("--endpoint-url", shared.endpoint_url)
    for value in ("X=1,2:FP32", "X=5,9:FP32"):
        assert (
            main(["invoke", "mixing", "--input", value, "--batch", "--record", file, *where]) == 0
        )
    assert main(["verify", "mixing", file, *where]) == 0
    capsys.readouterr()
    assert main(["verify", "mixing", file, "--concurrency", "8", *where]) == 1
    out = capsys.readouterr().out
    assert "together with other requests: output Y: 2 of 2 values differ" in out
    assert "a model mixes the requests of a batch" in out


def test_a_recorded_response_is_compared(
    shared: LocalEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same variant answers equally; another one differs,
    and `local up --verify` exits with 1.
    """
    file = tmp_path / "requests.json"
    where = ("--endpoint-url", shared.endpoint_url)
    assert main(["invoke", "adder", "--input", "X=1,2:FP32", "--record", str(file), *where]) == 0
    assert main(["verify", "adder", str(file), *where]) == 0
    assert capsys.readouterr().out.endswith("request-1: equal\n0 of 1 responses differ\n")
    assert main(["verify", "adder", str(file), "--target-variant", "Next", *where]) == 1
    assert "the first at 0: must be 6.0, got 7.0" in capsys.readouterr().out
    (request,) = json.loads(file.read_text())["requests"]
    assert request["outputs"][0]["data"] == [6.0, 7.0]
    other = AssemblyBuilder(tmp_path / "cdk.out").serve(
        "Adding", below("m", adding_model(9)), "adder"
    )
    up = [sys.executable, "-m", "constructs_triton.cli", "local", "up"]
    words = [*up, str(other.write()), "--port", "0", "--verify", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "output Y: 2 of 2 values differ, the first at 0: must be 6.0, got 10.0" in done.stdout
