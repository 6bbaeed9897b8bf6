"""ONNX models on this machine: ONNX Runtime takes the place of the server's backend."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from local_assembly import ADDING_MODEL, write_archive
from local_processes import variants
from onnx_samples import STRING, constant, linear_model, node, tensor, write_onnx
from test_local_endpoints import eventually
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_client import TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 2
pytestmark = needs_server

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 4
input [ { name: "RAW" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "SCORES" data_type: TYPE_FP32 dims: [ 3 ] } ]
ensemble_scheduling { step [
  { model_name: "raise" model_version: -1
    input_map { key: "X" value: "RAW" } output_map { key: "Y" value: "raised" } },
  { model_name: "net" model_version: -1
    input_map { key: "X" value: "raised" } output_map { key: "Y" value: "SCORES" } } ] }
"""
RAISE = """
backend: "python"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
# Each row of the answer is the row of the request, plus the sum of the whole batch.
BATCHED = """
platform: "onnxruntime_onnx"
default_model_filename: "sum.onnx"
max_batch_size: 2
version_policy { specific { versions: [ 1 ] } }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "labels.txt" } ]
instance_group [ { kind: KIND_GPU } ]
dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 20000000 }
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
parameters { key: "execution_mode" value { string_value: "1" } }
parameters { key: "enable_mem_pattern" value { string_value: "off" } }
optimization { graph { level: 1 } }
model_warmup { name: "zeros" batch_size: 1
  inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }
"""
OPTIONAL = """
backend: "onnxruntime"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] },
        { name: "scale" data_type: TYPE_FP32 dims: [ 1 ] optional: true } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
PLAN = """
platform: "tensorrt_plan"
max_batch_size: 2
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 3 ] } ]
instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model for each behaviour of the backend, and an ensemble with a Python model."""
    root = tmp_path_factory.mktemp("models")
    linear_model(root / "net" / "1" / "model.onnx")
    linear_model(root / "net" / "2" / "model.onnx", scale=2.0)
    _write(root / "raise" / "config.pbtxt", RAISE)
    _write(
        root / "raise" / "1" / "model.py",
        ADDING_MODEL.format(constant=1).replace("x[0] ==", "x[0, 0] =="),
    )
    _write(root / "whole" / "config.pbtxt", ENSEMBLE)
    pair = [tensor("X", ["b", 2])], [tensor("Y", ["b", 2])]
    total = [node("ReduceSum", ["X", "axes"], "S", keepdims=1), node("Add", "XS", "Y")]
    write_onnx(root / "batched" / "1" / "sum.onnx", *pair, total, constant("axes", np.array([0])))
    _write(root / "batched" / "2" / "sum.onnx", "not loaded")
    _write(root / "batched" / "config.pbtxt", BATCHED)
    _write(root / "batched" / "labels.txt", "first\nsecond\n")
    words = [tensor("X", ["n"], STRING)], [tensor("Y", ["n"], STRING)]
    write_onnx(root / "words" / "1" / "model.onnx", *words, [node("Identity", "X", "Y")])
    scale = constant("scale", np.array([3], np.float32))
    scaled = [tensor("X", ["n"]), tensor("scale", [1])], [tensor("Y", ["n"])]
    write_onnx(
        root / "optional" / "1" / "model.onnx", *scaled, [node("Mul", ["X", "scale"], "Y")], scale
    )
    _write(root / "optional" / "config.pbtxt", OPTIONAL)
    square = [tensor("X", ["n"])], [tensor("Y", [2, 2])]
    shape = constant("shape", np.array([2, 2]))
    write_onnx(
        root / "square" / "1" / "model.onnx", *square, [node("Reshape", ["X", "shape"], "Y")], shape
    )
    _write(root / "plan" / "config.pbtxt", PLAN)
    _write(root / "plan" / "1" / "model.plan", "ftrt" + "\0" * 28)
    _write(root / "decoder" / "config.pbtxt", RAISE.replace('"python"', '"dali"'))
    _write(root / "decoder" / "1" / "model.dali", "a pipeline")
    return root


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module")
def local(repository: Path) -> Iterator[LocalEndpoint]:
    """All of them on one multi-model endpoint."""
    before = _files(repository)
    stand_ins: dict[str, str | Path] = {
        "plan": repository / "net" / "2" / "model.onnx",
        "decoder": repository / "raise" / "1",
    }
    with LocalEndpoint.from_repository(
        repository, is_multi_model=True, stand_ins=stand_ins
    ) as running:
        yield running
    assert _files(repository) == before


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _client(local: LocalEndpoint, model: str | None) -> TritonClient:
    return TritonClient.for_endpoint(
        local.endpoint_names[0],
        endpoint_url=local.endpoint_url,
        target_model=None if model is None else f"{model}.tar.gz",
    )


def test_an_ensemble_of_a_python_and_an_onnx_model_needs_no_flag(repository: Path) -> None:
    """The answer is the framework's own, for the newest version of a model
    without a configuration.
    """
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    session = onnxruntime.InferenceSession(repository / "net" / "2" / "model.onnx")
    with LocalEndpoint.from_repository(repository, model="whole") as local:
        answer = _client(local, None).infer({"RAW": values})
        (name,) = local.endpoint_names
        assert (
            f"{name}/AllTraffic: net: backend onnxruntime is replaced by onnxruntime "
            in local.messages
        )
    np.testing.assert_allclose(answer["SCORES"], session.run(None, {"X": values + 1})[0], rtol=1e-6)


def test_two_commands_lead_from_a_model_file_to_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`model new`, then `local up`; with --watch a changed file is served
    without another command.
    """
    monkeypatch.chdir(tmp_path)
    linear_model(tmp_path / "model.onnx")
    assert main(["model", "new", "model.onnx", "--name", "net"]) == 0
    (repository,) = (path.parent for path in tmp_path.rglob("net") if path.is_dir())
    values = np.eye(2, 4, dtype=np.float32)
    with LocalEndpoint(
        ["local", "up", str(repository), "--watch", "--json", "--until-stdin-closes", "--port=0"]
    ) as local:
        client = _client(local, None)
        assert client.infer({"X": values})["Y"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        (file,) = repository.rglob("*.onnx")
        file.write_text("<html>")
        assert eventually(lambda: "the previous ones keep running" in local.messages), (
            local.messages
        )
        assert client.infer({"X": values})["Y"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        linear_model(file, scale=2.0)
        assert eventually(lambda: "the changed models are running" in local.messages), (
            local.messages
        )
        assert client.infer({"X": values})["Y"].tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


def test_requests_become_one_batch(local: LocalEndpoint) -> None:
    """Two requests wait for each other and are run together;
    the first version and its file name count.
    """
    client = _client(local, "batched")
    with ThreadPoolExecutor() as pool:
        rows = [np.array([[1, 2]], np.float32), np.array([[10, 20]], np.float32)]
        answers = list(pool.map(lambda row: client.infer({"X": row})["Y"].tolist(), rows))
    assert answers == [[[12.0, 24.0]], [[21.0, 42.0]]]


def test_strings_arrive_as_they_were_sent(local: LocalEndpoint) -> None:
    """Letters outside ASCII and empty strings too."""
    words = [[b"caf\xc3\xa9"], [b""]]
    assert _client(local, "words").infer({"X": np.array(words, object)})["Y"].tolist() == words


def test_an_optional_input_has_the_default_of_the_model(local: LocalEndpoint) -> None:
    """It may be sent, too."""
    client = _client(local, "optional")
    values = np.array([1, 2], np.float32)
    assert client.infer({"X": values})["Y"].tolist() == [3.0, 6.0]
    assert client.infer({"X": values, "scale": np.array([10], np.float32)})["Y"].tolist() == [
        10.0,
        20.0,
    ]


def test_an_error_of_the_runtime_has_the_words_of_the_backend(local: LocalEndpoint) -> None:
    """The next request is answered."""
    client = _client(local, "square")
    with pytest.raises(InvocationError, match=r"onnx runtime error \d+: .*Reshape"):
        client.infer({"X": np.zeros(3, np.float32)})
    assert client.infer({"X": np.ones(4, np.float32)})["Y"].shape == (2, 2)


def test_a_model_that_does_not_load_is_a_model_error(local: LocalEndpoint) -> None:
    """The container's answer has the runtime's reason."""
    (variant,) = variants(local)
    folder = Path(variant["model_directory"])
    config = 'backend: "onnxruntime"\n'
    write_archive(folder / "broken.tar.gz", {"m/config.pbtxt": config, "m/1/model.onnx": "<html>"})
    with pytest.raises(InvocationError, match=r"onnx runtime error 7: .*Protobuf parsing failed"):
        _client(local, "broken").infer({"X": np.zeros(1, np.float32)})


def test_an_onnx_file_runs_in_the_place_of_a_plan(local: LocalEndpoint) -> None:
    """It has the plan's configuration, and every stand-in is reported."""
    answer = _client(local, "plan").infer({"X": np.eye(2, 4, dtype=np.float32)})
    assert answer["Y"].tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    assert "plan: backend onnxruntime is replaced by onnxruntime " in local.messages
    assert "net/2/model.onnx runs in its place (--stand-in)" in local.messages


def test_a_python_model_runs_in_the_place_of_any_other(local: LocalEndpoint) -> None:
    """Its folder is copied into the version, and the configuration names the Python backend."""
    answer = _client(local, "decoder").infer({"X": np.zeros((1, 4), np.float32)})
    assert answer["Y"].tolist() == [[1.0, 1.0, 1.0, 1.0]]


def test_without_stand_ins_the_model_is_refused(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the backend."""
    assert (
        main(["local", "up", str(repository), "--model", "net", "--no-stand-ins", "--port", "0"])
        == 2
    )
    assert "net: needs the backend 'onnxruntime'" in capsys.readouterr().err
