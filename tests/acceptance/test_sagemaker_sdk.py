"""``Predictor`` of the SageMaker Python SDK calls a local endpoint,
from an environment of its own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from environments import environment
from triton_server import needs_server

from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.model_config import ModelConfig, ModelInput, ModelOutput
from triton_model_check.model_repository import ModelRepositoryBuilder

BUDGET_MINUTES = 1
pytestmark = needs_server

CALLER = Path(__file__).with_name("sdk_predictor.py")
MODEL = b"""
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        inputs = [
            pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests
        ]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", 2 * values)]) for values in inputs]
"""


def write_doubling_model(folder: Path, name: str, tensor: str) -> Path:
    """Write a repository with a model that doubles two numbers."""
    config = ModelConfig(
        name=name,
        backend="python",
        max_batch_size=4,
        input=[ModelInput(name=tensor, data_type="TYPE_FP32", dims=[2])],
        output=[ModelOutput(name="Y", data_type="TYPE_FP32", dims=[2])],
    )
    builder = ModelRepositoryBuilder()
    builder.add_model(config, files={"1/model.py": MODEL.replace(b'"X"', f'"{tensor}"'.encode())})
    return builder.write_to(folder).path


def test_predictor_with_identity_serializer(tmp_path: Path) -> None:
    """Version 2 of the SDK sends JSON and binary to a model of a multi-model endpoint."""
    python = environment("sagemaker_sdk", ["sagemaker<3"], tmp_path)
    models = write_doubling_model(tmp_path / "models", "double", "X")
    with LocalEndpoint.from_repository(models, endpoint="doubled", is_multi_model=True) as local:
        command = [str(python), str(CALLER), local.endpoint_url]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    assert json.loads(printed.splitlines()[-1]) == {"json": [3.0, 4.0], "binary": [3.0, 4.0]}
