"""Endpoints whose model generates text with vLLM, in an image of your own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_apps import add_endpoint, make_stack, only_variant, synthesize

from constructs_triton import TritonImage
from constructs_triton_core.errors import RepositoryError

IMAGE = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/triton-vllm:26.05"


def make_endpoint(directory: Path, arguments: dict[str, Any], **props: Any) -> cdk.Stack:
    """A stack with an endpoint of one vLLM model on one A10G."""
    (directory / "llm" / "1").mkdir(parents=True)
    (directory / "llm" / "1" / "model.json").write_text(json.dumps(arguments))
    config = 'name: "llm"\nbackend: "vllm"\ninstance_group [ { count: 1 kind: KIND_MODEL } ]\n'
    (directory / "llm" / "config.pbtxt").write_text(
        f"{config}model_transaction_policy {{ decoupled: true }}\n"
    )
    stack = make_stack()
    image, environment = (
        TritonImage.from_registry(IMAGE, triton_version="26.05"),
        {"SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream"},
    )
    add_endpoint(stack, directory, model="llm", image=image, environment=environment, **props)
    return stack


def test_weights_of_a_hub_get_the_longest_startup_timeout(tmp_path: Path) -> None:
    """The size of weights that the container downloads is not known at synth."""
    stack = make_endpoint(tmp_path, {"model": "Qwen/Qwen3-0.6B"})
    variant = only_variant(synthesize(stack))
    assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] == 3600
    assert variant["ModelDataDownloadTimeoutInSeconds"] == 600


@pytest.mark.parametrize(
    ("arguments", "props", "message"),
    [
        (
            {"model": "Qwen/Qwen3-0.6B"},
            {"enable_network_isolation": True},
            "with network isolation",
        ),
        (
            {"model": "Qwen/Qwen3-0.6B", "tensor_parallel_size": 2},
            {},
            r"world size \(2\) is larger",
        ),
    ],
)
def test_endpoint_decides_what_a_model_may_use(
    tmp_path: Path, arguments: dict[str, Any], props: dict[str, Any], message: str
) -> None:
    """The network isolation and the instance type of the endpoint are part of the checks."""
    with pytest.raises(RepositoryError, match=message):
        make_endpoint(tmp_path, arguments, **props)
