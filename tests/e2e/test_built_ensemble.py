"""An ensemble written in Python runs in the real server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from local_assembly import BUCKET, AssemblyBuilder
from triton_server import needs_server

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.model_config import (
    Ensemble,
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
    ModelWarmup,
    PythonBackend,
)
from triton_model_check.model_repository import ModelRepositoryBuilder, pack

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        {name} = pb_utils.get_input_tensor_by_name(request, "{name}").as_numpy()
        outputs = {outputs}
        return pb_utils.InferenceResponse([pb_utils.Tensor(key, value) for key, value in outputs.items()])
"""


def _model_py(name: str, outputs: str) -> bytes:
    return MODEL.format(name=name, outputs=outputs).encode()


NORMALIZE = ModelConfig(
    name="normalize",
    backend=PythonBackend(force_cpu_only_input_tensors=True),
    max_batch_size=8,
    input=[ModelInput(name="image", data_type="TYPE_UINT8", dims=[-1, 3])],
    output=[ModelOutput(name="pixels", data_type="TYPE_FP32", dims=[-1, 3])],
)
CLASSIFY = ModelConfig(
    name="classify",
    backend="python",
    max_batch_size=16,
    input=[ModelInput(name="pixels", data_type="TYPE_FP32", dims=[4, 3])],
    output=[
        ModelOutput(name="scores", data_type="TYPE_FP32", dims=[3]),
        ModelOutput(name="unread", data_type="TYPE_FP32", dims=[4]),
    ],
    instance_group=[ModelInstanceGroup(count=2, kind="KIND_CPU")],
    dynamic_batching=ModelDynamicBatching(max_queue_delay_microseconds=100),
    model_warmup=[
        ModelWarmup(
            name="zeros",
            batch_size=1,
            inputs={"pixels": ModelWarmup.Input(data_type="TYPE_FP32", dims=[4, 3], zero_data=True)},
        )
    ],
)
LABEL = ModelConfig(
    name="label",
    backend="python",
    max_batch_size=8,
    input=[ModelInput(name="logits", data_type="TYPE_FP32", dims=[3])],
    output=[ModelOutput(name="label", data_type="TYPE_STRING", dims=[1])],
)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """The repository that the builder lays out, packed, behind a single-model endpoint."""
    folder = tmp_path_factory.mktemp("built")
    pipeline = (
        Ensemble("colours")
        .input("image")
        .step(LABEL, inputs={"logits": "scores"})
        .step(CLASSIFY)
        .step(NORMALIZE)
        .output("label")
        .output("scores")
    )
    builder = ModelRepositoryBuilder()
    builder.add_model(pipeline)
    builder.add_model(NORMALIZE, _model_py("image", '{"pixels": (image / 255).astype(np.float32)}'))
    builder.add_model(
        CLASSIFY, _model_py("pixels", '{"scores": pixels.sum(axis=1), "unread": pixels.sum(axis=2)}')
    )
    names = 'np.array(["red", "green", "blue"], dtype=object)[logits.argmax(axis=1)]'
    builder.add_model(LABEL, _model_py("logits", f'{{"label": {names}.reshape(-1, 1)}}'))
    repository = builder.write_to(folder / "models")
    assembly = AssemblyBuilder(folder / "cdk.out")
    archive = pack(
        repository, repository.closure("colours"), assembly.directory, archive_name="asset.built.tar.gz"
    )
    assembly.files["built"] = {
        "source": {"path": archive.path.name, "packaging": "file"},
        "destinations": {
            "current_account-current_region": {"bucketName": BUCKET, "objectKey": "built.tar.gz"}
        },
    }
    environment = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "colours"}
    assembly.single_model("Colours", "built.tar.gz", environment)
    assembly.endpoint("Endpoint", {"AllTraffic": ("Colours", 1)}, name="colours")
    with LocalEndpoint.from_assembly(assembly.write()) as local:
        yield local


def test_built_ensemble_answers(endpoint: LocalEndpoint) -> None:
    """A batch goes through all steps: inferred types, dims and order are those that the server takes."""
    client = TritonClient.for_endpoint("colours", endpoint_url=endpoint.endpoint_url)
    images = np.zeros((2, 4, 3), dtype=np.uint8)
    images[0, :, 1] = 255
    images[1, :, 2] = 51
    result = client.infer({"image": images})
    assert result["label"].ravel().tolist() in (["green", "blue"], [b"green", b"blue"])
    np.testing.assert_allclose(result["scores"], np.array([[0, 4, 0], [0, 0, 0.8]]), rtol=1e-6)
