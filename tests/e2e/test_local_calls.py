"""Models that call other models (BLS) run in the real server, from the synthesized template."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
import numpy as np
import pytest
from local_assembly import PYTHON_CONFIG, adding_model, below, write_files
from programs import PROJECT, synthesize_app
from triton_server import needs_server

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)
from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

CALLER = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            self.answer(pb_utils.get_input_tensor_by_name(each, "X").as_numpy())
            for each in requests
        ]

    def answer(self, x):
        inputs = [pb_utils.Tensor("X", x * 10)]
        request = pb_utils.InferenceRequest(
            model_name="{called}", requested_output_names=["Y"], inputs=inputs
        )
        answer = request.exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=answer.error())
        return pb_utils.InferenceResponse([pb_utils.get_output_tensor_by_name(answer, "Y")])
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling {
  step { model_name: "caller" model_version: -1
    input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } }
}
"""


def calling_model(called: str) -> dict[str, str]:
    return {"config.pbtxt": PYTHON_CONFIG, "1/model.py": CALLER.format(called=called)}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """Two endpoints: an ensemble with a step that calls, and a caller of a caller."""
    folder = tmp_path_factory.mktemp("called")
    files = {
        **below("add_one", adding_model(1)),
        **below("caller", calling_model("add_one")),
        **below("outer", calling_model("caller")),
        **below("ensemble", {"config.pbtxt": ENSEMBLE, "1/.keep": ""}),
    }
    write_files(folder / "models", files)
    app = cdk.App(outdir=str(folder / "cdk.out"), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Called")
    source = ModelSource.from_directory(folder / "models")
    repository = TritonModelRepository(stack, "Models", source=source)
    instance_type = InstanceType.of("ml.c6i.xlarge")
    TritonEndpoint(
        stack,
        "outer",
        model_repository=repository,
        model="outer",
        instance_type=instance_type,
        endpoint_name="outer",
    )
    TritonEnsembleEndpoint(
        stack,
        "ensemble",
        model_repository=repository,
        ensemble="ensemble",
        instance_type=instance_type,
        endpoint_name="ensemble",
    )
    with LocalEndpoint.from_assembly(Path(app.synth().directory)) as local:
        yield local


@pytest.mark.parametrize(("name", "expected"), [("ensemble", 21.0), ("outer", 201.0)])
def test_called_models_answer(endpoint: LocalEndpoint, name: str, expected: float) -> None:
    """The called model is in the archive and loaded, for an ensemble and two levels."""
    client = TritonClient.for_endpoint(name, endpoint_url=endpoint.endpoint_url)
    assert client.infer({"X": np.array([2.0], np.float32)})["Y"].tolist() == [expected]


def test_sample_product_answers(tmp_path: Path) -> None:
    """The example runs: an ensemble of a Python and an ONNX model,
    and a model that calls the ONNX model.
    """
    synthesize_app(PROJECT / "examples/called_models/app.py", tmp_path, is_validated=False)
    with LocalEndpoint.from_assembly(tmp_path) as local:
        review = TritonClient.for_endpoint("review", endpoint_url=local.endpoint_url)
        texts = np.array([["great phone, love it"], ["bad, broken, refund"]], dtype=object)
        praise, complaint = review.infer({"text": texts})["score"].ravel()
        assert praise > 0.9
        assert complaint < 0.1
        moderation = TritonClient.for_endpoint("moderation", endpoint_url=local.endpoint_url)
        features = np.array([[0.1, 0, 2, 0], [0.1, 0, 0, 2], [0.1, 0, 3, 1]], dtype=np.float32)
        decisions = moderation.infer({"features": features})["decision"].ravel().tolist()
        assert decisions == [b"publish", b"review", b"publish"]
