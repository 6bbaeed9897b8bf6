"""The endpoints that several modules call on the real server. One run serves all of them."""

from __future__ import annotations

from pathlib import Path

from local_assembly import AssemblyBuilder, adding_model, below
from programs import PROJECT

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
from triton_model_check.model_repository import ModelRepository, ModelRepositoryBuilder

_REVIEWS = PROJECT / "assets" / "model_repositories" / "reviews"
# Subtracts the mean of the whole batch, which is a fault.
_MIXING = """
import time
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        x = [pb.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        time.sleep(0.02)
        mean = np.concatenate(x).mean()
        y = [(each - mean).astype(np.float32) for each in x]
        return [pb.InferenceResponse([pb.Tensor("Y", each)]) for each in y]
"""
_MIXING_CONFIG = """
backend: "python" max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 2000 }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
# Adds up a sequence.
_SUMS_CONFIG = """backend: "python"
max_batch_size: 1
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "sum" data_type: TYPE_FP32 dims: 1 }
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  control_input {
    name: "start"
    control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }
  }
}
instance_group { count: 2 kind: KIND_CPU }
"""
_SUMS = """import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.add(each) for each in requests]

    def add(self, request):
        tensors = [pb_utils.get_input_tensor_by_name(request, name) for name in ("x", "start")]
        value, start = (each.as_numpy() for each in tensors)
        self.sum = value if start.any() else self.sum + value
        return pb_utils.InferenceResponse([pb_utils.Tensor("sum", self.sum)])
"""
_STEP = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        {name} = pb_utils.get_input_tensor_by_name(request, "{name}").as_numpy()
        outputs = {outputs}
        tensors = [pb_utils.Tensor(key, value) for key, value in outputs.items()]
        return pb_utils.InferenceResponse(tensors)
"""


def _model_py(name: str, outputs: str) -> bytes:
    return _STEP.format(name=name, outputs=outputs).encode()


_NORMALIZE = ModelConfig(
    name="normalize",
    backend=PythonBackend(force_cpu_only_input_tensors=True),
    max_batch_size=8,
    input=[ModelInput(name="image", data_type="TYPE_UINT8", dims=[-1, 3])],
    output=[ModelOutput(name="pixels", data_type="TYPE_FP32", dims=[-1, 3])],
)
_CLASSIFY = ModelConfig(
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
            inputs={
                "pixels": ModelWarmup.Input(data_type="TYPE_FP32", dims=[4, 3], zero_data=True)
            },
        )
    ],
)
_LABEL = ModelConfig(
    name="label",
    backend="python",
    max_batch_size=8,
    input=[ModelInput(name="logits", data_type="TYPE_FP32", dims=[3])],
    output=[ModelOutput(name="label", data_type="TYPE_STRING", dims=[1])],
)


def shared_assembly(folder: Path) -> Path:
    """Write the assembly of the endpoints "adder", "mixing", "sums", "colours" and "scorer"."""
    builder = AssemblyBuilder(folder / "cdk.out")
    for logical_id, constant in (("Model", 5), ("Next", 6)):
        archive = builder.asset(f"adds{constant}", below("m", adding_model(constant)))
        builder.single_model(logical_id, archive)
    builder.endpoint("Adding", {"AllTraffic": ("Model", 1), "Next": ("Next", 0)}, name="adder")
    mixing = below("mixing", {"config.pbtxt": _MIXING_CONFIG, "1/model.py": _MIXING})
    builder.serve("Mixing", mixing, "mixing")
    files = below("sums", {"config.pbtxt": _SUMS_CONFIG, "1/model.py": _SUMS})
    builder.single_model("Sums", builder.asset("sums", files))
    builder.endpoint("Sticky", {"A": ("Sums", 1), "B": ("Sums", 1)}, name="sums")
    builder.serve_packed(_colours(folder / "models"), "colours")
    builder.serve_packed(ModelRepository.from_directory(_REVIEWS), "scorer")
    return builder.write()


def _colours(folder: Path) -> ModelRepository:
    """The repository that the builder lays out for an ensemble written in Python."""
    pipeline = (
        Ensemble("colours")
        .input("image")
        .step(_LABEL, inputs={"logits": "scores"})
        .step(_CLASSIFY)
        .step(_NORMALIZE)
        .output("label")
        .output("scores")
    )
    builder = ModelRepositoryBuilder()
    builder.add_model(pipeline)
    builder.add_model(
        _NORMALIZE, _model_py("image", '{"pixels": (image / 255).astype(np.float32)}')
    )
    builder.add_model(
        _CLASSIFY,
        _model_py("pixels", '{"scores": pixels.sum(axis=1), "unread": pixels.sum(axis=2)}'),
    )
    names = 'np.array(["red", "green", "blue"], dtype=object)[logits.argmax(axis=1)]'
    builder.add_model(_LABEL, _model_py("logits", f'{{"label": {names}.reshape(-1, 1)}}'))
    return builder.write_to(folder)
