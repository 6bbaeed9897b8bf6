"""``ModelConfig``: composing, reading, changing and writing configurations."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError, ModelConfigError
from triton_model_check import model_config
from triton_model_check.builder.backend import Backend
from triton_model_check.model_config import (
    DaliBackend,
    FilBackend,
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelOutput,
    ModelResponseCache,
    ModelTransactionPolicy,
    OnnxruntimeBackend,
    OpenvinoBackend,
    PythonBackend,
    PytorchBackend,
    TensorflowBackend,
    TensorrtBackend,
    TensorrtllmBackend,
    VllmBackend,
)
from triton_model_check.model_config.text import parse_model_config

# For values whose types are wrong on purpose, out of a type checker's sight.
untyped: Any = model_config

PLAIN = ModelConfig(
    name="plain",
    backend="python",
    max_batch_size=8,
    input=[ModelInput(name="x", data_type="TYPE_FP32", dims=[-1])],
    output=[ModelOutput(name="y", data_type="TYPE_FP32", dims=[-1])],
)
FILE = """# comments are lost
name: 'plain'  max_batch_size: 8,
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: -1 reshape { shape: [ ] } optional: true } ]
output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
metric_tags { key: "team" value: "ähm" }
model_metrics { metric_control {
  metric_identifier { family: "nv_inference_first_response_histogram_ms" } } }
instance_group [ {
  count: 2 host_policy: "numa0" rate_limiter { resources { name: "r" global: true count: 1 } } } ]
"""


NO_SIZE = [ModelInput(name="x", data_type="TYPE_FP32", dims=[0])]
BATCHES_OF_16 = ModelDynamicBatching(preferred_batch_size=[16])
NEGATIVE = "model \"plain\": 'max_batch_size' must be non-negative value, got -1; write 0"
TOO_LARGE = "dynamic batching preferred size must be <= max batch size, got 16"
NO_FORMAT = "TensorflowBackend.format: invalid value, got 'pb'; pass 'savedmodel' or 'graphdef'"
CACHE, DECOUPLED = ModelResponseCache(enable=True), ModelTransactionPolicy(decoupled=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: PLAIN.with_(max_batch_size=-1), NEGATIVE),
        (lambda: PLAIN.with_(max_batch=4), "got 'max_batch'; did you mean \"max_batch_size\"?"),
        (lambda: PLAIN.with_(dynamic_batching=BATCHES_OF_16), TOO_LARGE),
        (lambda: PLAIN.with_(input=NO_SIZE), 'input "x": dimension must be integer >= 1'),
        (
            lambda: PLAIN.with_(response_cache=CACHE, model_transaction_policy=DECOUPLED),
            "response_cache",
        ),
        (lambda: ModelConfig(platform="python"), 'write backend: "python"'),
        (
            lambda: PLAIN.with_(parameters={"threads": 4}),
            "ModelConfig.parameters: must be a string, got 4",
        ),
        (lambda: PLAIN.with_(extra="max_batch: 1"), "ModelConfig.extra: cannot be parsed"),
        (
            lambda: PythonBackend(execution_env_path=""),
            "must be the path of an archive, got ''; omit it",
        ),
        (lambda: untyped.TensorflowBackend(format="pb"), NO_FORMAT),
        (lambda: untyped.OnnxruntimeBackend(execution_mode=2), "got 2; pass 0 or 1"),
        (lambda: untyped.OnnxruntimeBackend(intra_op_thread_count=True), "got True; pass int"),
        (
            lambda: untyped.FilBackend(model_type="xgb"),
            "got 'xgb'; pass 'xgboost' or 'xgboost_json'",
        ),
        (
            lambda: untyped.TensorrtllmBackend(gpt_model_path=None),
            "gpt_model_path: is required, got None",
        ),
        (
            lambda: untyped.ModelConfig(backend=PytorchBackend(), input=3),
            "input: must be a list, got 3",
        ),
    ],
)
def test_error_is_raised_where_the_value_is_set(change: Callable[[], object], message: str) -> None:
    """The call that sets a value that Triton or a backend would reject raises the error."""
    with pytest.raises(InvalidValueError) as caught:
        change()
    assert message in str(caught.value)


def test_with_keeps_the_rest_and_the_original() -> None:
    """A change returns a copy that differs only in the named fields."""
    changed = PLAIN.with_(name="other", response_cache=ModelResponseCache(enable=True))
    assert PLAIN.response_cache is None
    assert changed.with_(name="plain", response_cache=None) == PLAIN


def test_read_change_write_loses_only_comments(tmp_path: Path) -> None:
    """A file that is read, changed and written equals the text with the
    same change made by hand.
    """
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "config.pbtxt").write_text(FILE, encoding="utf-8")
    read = ModelConfig.read(folder)
    read.with_(max_batch_size=4).write(folder)
    text = (folder / "config.pbtxt").read_text(encoding="utf-8")
    assert parse_model_config(text) == parse_model_config(
        FILE.replace("max_batch_size: 8", "max_batch_size: 4")
    )
    assert "comment" not in text
    assert [path.name for path in folder.iterdir()] == ["config.pbtxt"]


def test_invalid_file_can_be_read_and_fixed() -> None:
    """A file with several errors can be fixed one error at a time."""
    faulty = ModelConfig.from_text('platform: "python" max_batch_size: -1')
    assert len(faulty.check().errors) >= 2
    half = faulty.with_(platform="", backend="python")
    assert half.with_(max_batch_size=0).max_batch_size == 0
    with pytest.raises(InvalidValueError, match="dimension must be integer >= 1"):
        half.with_(input=[ModelInput(name="x", dims=[0])])


def test_equal_configurations_give_equal_text() -> None:
    """The text does not depend on the order of a map,
    and spells an ensemble's platform as SageMaker does.
    """
    one = PLAIN.with_(parameters={"a": "1", "b": "2"})
    other = PLAIN.with_(parameters={"b": "2", "a": "1"})
    assert one.to_text() == other.to_text()
    text = ModelConfig.from_text("platform : 'ensemble' ensemble_scheduling { }").to_text()
    assert 'platform: "ensemble"\n' in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            None,
            (
                "config.pbtxt: error[layout-config-unreadable]: "
                "cannot be read (no such file or directory)"
            ),
        ),
        (
            "max_batch: 1",
            "config.pbtxt:1:1: error[text-unknown-field]: ModelConfig has no field named",
        ),
    ],
)
def test_unreadable_file_is_located(tmp_path: Path, content: str | None, message: str) -> None:
    """The error about an absent or invalid file has its path and place."""
    path = tmp_path / "config.pbtxt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ModelConfigError) as caught:
        ModelConfig.read(path)
    assert message in str(caught.value)


def test_folder_of_a_model_is_created(tmp_path: Path) -> None:
    """A path is the folder of a model unless it ends in ``.pbtxt``, whether it exists or not."""
    folder = tmp_path / "models" / "router"
    assert PLAIN.write(folder) == PLAIN.write(str(folder)) == folder / "config.pbtxt"
    assert [path.name for path in folder.iterdir()] == ["config.pbtxt"]
    assert PLAIN.write(folder / "next.pbtxt") == folder / "next.pbtxt"
    (tmp_path / "notes").touch()
    with pytest.raises(
        InvalidValueError, match=r"cannot be written \(file exists\); pass the folder of a m"
    ):
        PLAIN.write(tmp_path / "notes")
    with pytest.raises(InvalidValueError, match=r"missing/config.pbtxt: cannot be written"):
        PLAIN.write(tmp_path / "missing" / "config.pbtxt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "notes"]


PYTHON = PythonBackend(execution_env_path="env.tar.gz", force_cpu_only_input_tensors=False)
FIL = FilBackend(model_type="xgboost_json", output_class=True, predict_proba=False, threshold=0.3)
LLAMA = TensorrtllmBackend(gpt_model_path="/opt/ml/model/llama/1")
PYTHON_ENVIRONMENT = "$$TRITON_MODEL_DIRECTORY/env.tar.gz"
ONNX = 'platform: "onnxruntime_onnx"'
FIL_PARAMETERS = {"output_class": "true", "predict_proba": "false", "threshold": "0.3"}
LLAMA_TYPE = {"gpt_model_type": "inflight_fused_batching"}
AUTO = {"NUM_STREAMS": "AUTO", "RESHAPE_IO_LAYERS": "YES"}
VLLM = 'backend: "vllm" instance_group { kind: KIND_MODEL count: 1 }'


@pytest.mark.parametrize(
    ("backend", "text", "parameters"),
    [
        (
            PYTHON,
            "python",
            {"EXECUTION_ENV_PATH": PYTHON_ENVIRONMENT, "FORCE_CPU_ONLY_INPUT_TENSORS": "no"},
        ),
        (
            PythonBackend(execution_env_path=Path("/a.tgz")),
            "python",
            {"EXECUTION_ENV_PATH": "/a.tgz"},
        ),
        (OnnxruntimeBackend(intra_op_thread_count=2), ONNX, {"intra_op_thread_count": "2"}),
        (TensorrtBackend(), 'platform: "tensorrt_plan"', {}),
        (
            PytorchBackend(inference_mode=True),
            'platform: "pytorch_libtorch"',
            {"INFERENCE_MODE": "true"},
        ),
        (TensorflowBackend(), 'platform: "tensorflow_savedmodel"', {}),
        (DaliBackend(num_threads=4), "dali", {"num_threads": "4"}),
        (FIL, "fil", {"model_type": "xgboost_json", **FIL_PARAMETERS}),
        (OpenvinoBackend(num_streams="AUTO", reshape_io_layers=True), "openvino", AUTO),
        (VllmBackend(), VLLM, {}),
        (LLAMA, "tensorrtllm", {"gpt_model_path": "/opt/ml/model/llama/1", **LLAMA_TYPE}),
        ("kaldi", "kaldi", {}),
    ],
    ids=lambda value: getattr(value, "NAME", None),
)
def test_backend_is_written_as_documented(
    backend: Backend | str, text: str, parameters: dict[str, str]
) -> None:
    """Each backend sets its name or platform and its parameters, as in its documentation."""
    wanted = parse_model_config(text if ":" in text else f'backend: "{text}"')
    for key, value in parameters.items():
        wanted.parameters[key].string_value = value
    assert ModelConfig(backend=backend).to_message() == wanted


def test_backend_names_tensors_by_position() -> None:
    """Tensors of PyTorch and FIL get the names that the backend expects; a given name is kept."""
    inputs = [ModelInput(data_type="TYPE_FP32", dims=[1]), ModelInput(name="mask", dims=[1])]
    outputs = [ModelOutput(data_type="TYPE_FP32", dims=[1])]
    pytorch = ModelConfig(backend=PytorchBackend(), input=inputs, output=outputs)
    assert [tensor.name for tensor in pytorch.input] == ["INPUT__0", "mask"]
    assert [tensor.name for tensor in pytorch.output] == ["OUTPUT__0"]
    assert (
        ModelConfig(backend=FilBackend(output_class=False), output=outputs).output[0].name
        == "output__0"
    )


def test_another_backend_replaces_the_platform() -> None:
    """Changing the backend removes the old platform and keeps the given parameters."""
    pytorch = ModelConfig(backend=PytorchBackend(), parameters={"mine": "1"})
    changed = pytorch.with_(backend=OnnxruntimeBackend(execution_mode=1))
    assert changed.platform == "onnxruntime_onnx"
    assert dict(changed.parameters) == {"mine": "1", "execution_mode": "1"}


def test_import_loads_no_protobuf() -> None:
    """Importing the builder imports neither protobuf nor the rules, and has all public names."""
    code = "import sys, triton_model_check.model_config as m; m.ModelConfig; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "google.protobuf" not in run.stdout.split()
