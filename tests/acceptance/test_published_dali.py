"""DALI and Inception v3 as one ensemble: the article's configurations, and the twin in Triton."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_scripts import PUBLISHED_SYSTEMS, assembly, client, endpoint, run_script
from triton_server import needs_server

from constructs_triton_client import RequestedOutput, TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.server_check import ask_server

NAME = "dali_inception"
ENDPOINT = "dali-inception-twin"
EXAMPLE = PUBLISHED_SYSTEMS / NAME
LABEL = b"blue, row 3, column 8"

BUDGET_MINUTES = 1
pytestmark = needs_server
__all__ = ["assembly", "client", "endpoint"]  # fixtures


@pytest.fixture(scope="module")
def jpeg() -> Any:
    """Return the example's picture as the article reads it, UINT8 [1, bytes]."""
    return np.fromfile(EXAMPLE / "picture.jpg", dtype=np.uint8)[np.newaxis]


@pytest.mark.parametrize("repository", ["article", "modern_onnx", "modern_tensorrt"])
def test_server_accepts_the_configurations(assembly: Path, repository: str) -> None:
    """Triton's core accepts all three configurations and the connections of the ensemble."""
    folder = EXAMPLE if repository == "article" else assembly.parent / "build"
    answers = ask_server(folder / repository)
    assert len(answers) == 3
    assert {answer.outcome for answer in answers.values()} == {"loads"}


def test_all_three_requests_name_the_picture(assembly: Path, endpoint: LocalEndpoint) -> None:
    """``invoke.py`` prints the same best class for JSON, tritonclient and TritonClient."""
    labels = assembly.parent / "build" / "twin" / "inception_graphdef" / "inception_labels.txt"
    options = ["--endpoint-url", endpoint.endpoint_url, "--labels", labels]
    lines = run_script(NAME, "invoke.py", ENDPOINT, *options).splitlines()
    assert len(lines) == 3
    assert {line.partition(": ")[2] for line in lines} == {lines[0].partition(": ")[2]}
    assert LABEL.decode() in lines[0]


def test_answer_equals_the_network_without_a_server(client: TritonClient, jpeg: Any) -> None:
    """The ensemble returns what its steps return when they are called one after the other."""
    folder = EXAMPLE.parent / "small_network"
    preprocessing = runpy.run_path(str(folder / "preprocessing.py"))
    network = runpy.run_path(str(folder / "network.py"))
    pixels = preprocessing["inception_pixels"](jpeg.tobytes())[np.newaxis].transpose(0, 3, 1, 2)
    weights = network["load_weights"](folder / "inception.npz")
    expected = np.exp(network["log_probabilities"](weights, pixels))
    scores = client.infer({"INPUT": jpeg})["OUTPUT"]
    assert scores.shape == (1, 1001)
    np.testing.assert_allclose(scores.sum(), 1, rtol=1e-4)
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-6)


def test_batch_of_files_is_padded_with_zeros(client: TritonClient, jpeg: Any) -> None:
    """Two files in one request, the shorter one padded with zeros,
    give the same results as each alone.
    """
    alone = client.infer({"INPUT": jpeg})["OUTPUT"]
    batch = np.stack([np.pad(jpeg[0], (0, 100)), np.pad(jpeg[0], (0, 100))])
    both = client.infer({"INPUT": batch})["OUTPUT"]
    np.testing.assert_allclose(both, np.repeat(alone, 2, axis=0), rtol=1e-3, atol=1e-6)


def test_labels_come_from_the_label_file(client: TritonClient, jpeg: Any) -> None:
    """Triton's classification extension returns the line of the label file."""
    result = client.infer({"INPUT": jpeg}, [RequestedOutput("OUTPUT", class_count=2)])
    (best, _), *_ = result.classifications("OUTPUT")
    assert best.label == LABEL.decode()


def test_what_is_no_picture_is_the_callers_fault(client: TritonClient) -> None:
    """A file that cannot be decoded is an error with its position and size;
    the next request succeeds.
    """
    with pytest.raises(
        InvocationError, match=r"INPUT\[0\]: must be a whole JPEG file, got 4 bytes"
    ):
        client.infer({"INPUT": np.array([[1, 2, 3, 4]], np.uint8)})
