"""A load test of a model whose backend is replaced on the real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.measuring.load_test.target import find_stand_ins
from constructs_triton_tools.planning import read_measurements

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]
STEP = ["--rates", "80", "--step-seconds", "1", "--warm-up-seconds", "0", "--latency-ms", "9000"]
LOAD = ["--input", "features=1,2,3,4:FP32", "--batch", *STEP]


def test_figures_of_a_stand_in_are_labelled(
    shared: LocalEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line names what ran the model, and so do the JSON and the name of the rows."""
    benchmark = tmp_path / "b.csv"
    url = shared.endpoint_url
    words = ["load-test", "scorer", "--endpoint-url", url, *LOAD]
    assert main([*words, "-o", str(benchmark)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("stand-ins run scorer (onnxruntime ")
    assert main([*words, "--json"]) == 0
    assert "onnxruntime" in json.loads(capsys.readouterr().out)["stand_ins"]["scorer"]
    assert find_stand_ins(url, "scorer", variant="Other") == {}
    assert {each.configuration for each in read_measurements(benchmark)} == {"scorer (stand-in)"}
