"""What a container does with SAGEMAKER_TRITON_INFERENCE_TYPE, and what the run says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from constructs_triton_tools.local.sources.inference_type import (
    is_decoupled,
    report_inference_type,
    used_inference_type,
)
from constructs_triton_tools.local.sources.specs import ContainerSpec

NEW = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.04-py3"
OLD = "nvcr.io/nvidia/tritonserver:24.10-py3"
DECOUPLED = "model_transaction_policy { decoupled: true }"


def container(inference_type: str | None, *, is_multi_model: bool = False) -> ContainerSpec:
    """A container whose template has this inference type."""
    environment = (
        {} if inference_type is None else {"SAGEMAKER_TRITON_INFERENCE_TYPE": inference_type}
    )
    archive = None if is_multi_model else Path("m.tar.gz")
    return ContainerSpec("m", "", "s3://b/m.tar.gz", environment, archive)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A repository with one decoupled model."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text(DECOUPLED)
    return tmp_path


REFUSED = "the model is decoupled, so every request gets status 501"
NO_EFFECT = "SAGEMAKER_TRITON_INFERENCE_TYPE=generate has no effect on a multi-model endpoint"


@pytest.mark.parametrize(
    ("given", "image", "used", "messages"),
    [
        (container("generate_stream"), NEW, "generate_stream", []),
        (container("generate"), "my-triton", "generate", []),
        (container("generate_stream"), OLD, "infer", ["is older than 25.04 and ignores", REFUSED]),
        (container(None), NEW, "infer", [REFUSED]),
        (container("infer"), "", "infer", [REFUSED]),
        (container("generate", is_multi_model=True), NEW, "infer", [NO_EFFECT]),
        (container(None, is_multi_model=True), NEW, "infer", []),
    ],
)
def test_type_that_is_used(
    models: Path, given: ContainerSpec, image: str, used: str, messages: list[str]
) -> None:
    """Old images and multi-model containers ignore the variable,
    and each request that fails is announced.
    """
    found: list[str] = []
    report_inference_type(given, image, models, found.append)
    assert used_inference_type(given, image) == used
    assert len(found) == len(messages)
    assert all(part in message for part, message in zip(messages, found, strict=True))


def test_a_repository_that_the_server_refuses_is_not_decoupled(models: Path) -> None:
    """An unknown default model, and an ensemble whose step does not exist,
    are the server's to report.
    """
    (models / "e" / "1").mkdir(parents=True)
    step = 'ensemble_scheduling { step { model_name: "absent" model_version: -1 } }'
    (models / "e" / "config.pbtxt").write_text(f'platform: "ensemble" {step}')
    assert [is_decoupled(models, name) for name in ("m", "x", "e")] == [True, False, False]


def test_model_that_calls_a_decoupled_one_is_not_decoupled(models: Path) -> None:
    """It collects the responses itself; an ensemble with a decoupled step does not."""
    code = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        request = pb_utils.InferenceRequest(model_name="m", inputs=[], requested_output_names=[])
        return [each for each in request.exec(decoupled=True)]
"""
    (models / "caller" / "1").mkdir(parents=True)
    (models / "caller" / "config.pbtxt").write_text('backend: "python"')
    (models / "caller" / "1" / "model.py").write_text(code)
    for name, step in (("inner", "m"), ("outer", "inner"), ("calls", "caller")):
        (models / name / "1").mkdir(parents=True)
        steps = f'ensemble_scheduling {{ step {{ model_name: "{step}" model_version: -1 }} }}'
        (models / name / "config.pbtxt").write_text(f'platform: "ensemble" {steps}')
    found = {name: is_decoupled(models, name) for name in ("caller", "outer", "calls")}
    assert found == {"caller": False, "outer": True, "calls": False}
