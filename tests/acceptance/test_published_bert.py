"""The eight configurations of the BERT benchmark with the Triton server, and a small encoder."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_scripts import PUBLISHED_SYSTEMS, assembly, client, endpoint, run_script
from triton_server import needs_server

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.server_check import ask_server

NAME = "bert_benchmark"
ENDPOINT = "small-bert"
EXAMPLE = PUBLISHED_SYSTEMS / NAME

BUDGET_MINUTES = 2
pytestmark = needs_server
__all__ = ["assembly", "client", "endpoint"]  # fixtures


def sentences(count: int) -> tuple[Any, Any]:
    """Return token ids and mask, INT32 [count, 512], of sentences of 2 to 20 tokens."""
    random = np.random.RandomState(0)
    lengths = random.randint(2, 21, count)
    mask = (np.arange(512) < lengths[:, np.newaxis]).astype(np.int32)
    return (random.randint(1, 30522, (count, 512)) * mask).astype(np.int32), mask


def test_server_accepts_all_eight_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton's core accepts each of the eight configurations."""
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "cdk.out"))
    variants = runpy.run_path(str(EXAMPLE / "variants.py"))
    (tmp_path / "all").mkdir()
    for name in variants["VARIANTS"]:
        text = (variants["write_variant"](name) / "bert" / "config.pbtxt").read_text()
        (tmp_path / "all" / name / "1").mkdir(parents=True)
        (tmp_path / "all" / name / "config.pbtxt").write_text(text.replace('name: "bert"', "", 1))
    answers = ask_server(tmp_path / "all")
    assert len(answers) == 8
    assert {answer.outcome for answer in answers.values()} == {"loads"}


def test_answers_equal_the_encoder_itself(client: TritonClient) -> None:
    """The endpoint returns the logits of a forward pass without a server."""
    encoder = runpy.run_path(str(EXAMPLE / "small_model" / "encoder.py"))
    tokens, mask = sentences(16)
    result = client.infer({"INPUT__0": tokens, "INPUT__1": mask})["OUTPUT__0"]
    expected = encoder["logits"](encoder["make_weights"](), tokens, mask)
    assert result.shape == (16, 2)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


def test_requests_at_once_get_their_own_answers(client: TritonClient) -> None:
    """The dynamic batcher combines simultaneous requests and separates their responses."""
    tokens, mask = sentences(16)
    alone = client.infer({"INPUT__0": tokens, "INPUT__1": mask})["OUTPUT__0"]
    requests = ({"INPUT__0": tokens[i : i + 1], "INPUT__1": mask[i : i + 1]} for i in range(16))
    answers = [result["OUTPUT__0"][0] for result in client.infer_many(requests, max_concurrency=8)]
    np.testing.assert_allclose(np.stack(answers), alone, rtol=1e-3, atol=1e-4)


def test_rows_are_compared_in_turns() -> None:
    """``tune_rows.py`` says of a row whether it is faster, and which rows need a GPU."""
    printed = run_script(NAME, "tune_rows.py", "trt-ig", "--rounds", "2", "--step-seconds", "1")
    first, *others = printed.splitlines()
    assert re.match(r"trt-ig +against trt-base +(faster|slower|not distinguishable): \d", first)
    assert any("trt-*" in line and "TensorRT itself" in line for line in others)


def test_invocation_script_prints_probabilities(endpoint: LocalEndpoint) -> None:
    """``invoke.py`` pads the tokens and prints two probabilities that sum to one."""
    printed = run_script(NAME, "invoke.py", ENDPOINT, "--endpoint-url", endpoint.endpoint_url)
    no, yes = (float(part.split(": ")[1]) for part in printed.strip().split(", "))
    assert abs(no + yes - 1) < 0.002
