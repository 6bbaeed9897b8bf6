"""Two models with ResNet-50's inputs and outputs on one endpoint: the stack of the example,
run locally.
"""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from example_scripts import PUBLISHED_SYSTEMS, assembly, endpoint, run_script
from triton_server import needs_server

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.server_check import ask_server

NAME = "resnet_autoscaling"
ENDPOINT = "small-network"
EXAMPLE = PUBLISHED_SYSTEMS / NAME
BLUE_ROW_3_COLUMN_8 = 527
PYTORCH, TENSORRT = "resnet_pt_v0.tar.gz", "resnet_trt_v0.tar.gz"

BUDGET_MINUTES = 1
pytestmark = needs_server
__all__ = ["assembly", "endpoint"]  # fixtures


@pytest.fixture(scope="module")
def pixels() -> Any:
    """Return the pixels of the example's JPEG file, FP32 [3, 224, 224]."""
    preprocessing = runpy.run_path(str(EXAMPLE.parent / "small_network" / "preprocessing.py"))
    return preprocessing["resnet_pixels"]((EXAMPLE / "picture.jpg").read_bytes())


def test_server_accepts_both_configurations(assembly: Path) -> None:
    """Triton's core accepts the configurations of the TorchScript and TensorRT models,
    with the warm-up.
    """
    for folder in ("resnet50_pt", "resnet50_trt"):
        (answer,) = ask_server(assembly.parent / "build" / folder).values()
        assert str(answer).startswith("loads (an empty backend")


def test_answers_equal_the_network_itself(endpoint: LocalEndpoint, pixels: Any) -> None:
    """Both models return what the network computes without a server, each in its precision."""
    network = runpy.run_path(str(EXAMPLE.parent / "small_network" / "network.py"))
    weights = network["load_weights"](EXAMPLE.parent / "small_network" / "resnet.npz")
    batch = np.stack([pixels, pixels[:, ::-1]])
    for target, dtype in ((PYTORCH, np.float32), (TENSORRT, np.float16)):
        rounded = {name: value.astype(dtype).astype(np.float32) for name, value in weights.items()}
        expected = network["log_probabilities"](rounded, batch)[:, 1:]
        client = TritonClient.for_endpoint(
            ENDPOINT, endpoint_url=endpoint.endpoint_url, target_model=target
        )
        name, output = ("INPUT__0", "OUTPUT__0") if target == PYTORCH else ("input", "output")
        np.testing.assert_allclose(
            client.infer({name: batch})[output], expected, rtol=1e-4, atol=1e-4
        )


def test_unknown_target_model_and_wrong_shape_are_refused(
    endpoint: LocalEndpoint, pixels: Any
) -> None:
    """An unknown model is a ValidationError, and an invalid input is a ModelError."""
    runtime = boto3.client("sagemaker-runtime", endpoint_url=endpoint.endpoint_url)
    tensor = {"name": "INPUT__0", "shape": [1, 3, 2, 2], "datatype": "FP32", "data": [0.0] * 12}
    call = {"EndpointName": ENDPOINT, "Body": json.dumps({"inputs": [tensor]})}
    with pytest.raises(runtime.exceptions.ModelError, match="shape"):
        runtime.invoke_endpoint(**call, TargetModel=PYTORCH)
    with pytest.raises(runtime.exceptions.ClientError, match=r"resnet_v9\.tar\.gz"):
        runtime.invoke_endpoint(**call, TargetModel="resnet_v9.tar.gz")


def test_invocation_script_names_the_picture(endpoint: LocalEndpoint) -> None:
    """``invoke.py`` prints the right class first, for both models and both forms of a request."""
    printed = run_script(NAME, "invoke.py", ENDPOINT, "--endpoint-url", endpoint.endpoint_url)
    assert re.findall(r": classes \[(\d+),", printed) == [str(BLUE_ROW_3_COLUMN_8)] * 4
