"""What the check says of models that do not fit into the memory of a GPU or of the host.

The ONNX models are real files whose external data is sparse, so that it has its size but takes no
disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

GIB = 2**30
A10G = 22_888
"""MiB of one GPU of ml.g5.xlarge."""
WEIGHTS, GPU, HOST = CODES = ("target-gpu-weights-memory", "target-gpu-memory", "target-memory")


def _onnx(folder: Path, gib: int, config: str, *, has_data: bool = True) -> None:
    """Write Y = MatMul(X, W), whose W of ``gib`` GiB is in ``weights.bin``."""
    rows = gib * GIB // 4 // 1024
    weights = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[rows, 1024])
    weights.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("length", str(gib * GIB))):
        weights.external_data.add(key=key, value=value)
    x = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["batch", rows])
    y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["batch", 1024])
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["X", "W"], ["Y"])], "g", [x], [y], [weights]
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    version = folder / "1"
    version.mkdir(parents=True)
    (version / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "config.pbtxt").write_text(f'backend: "onnxruntime"\nmax_batch_size: 8\n{config}')
    if has_data:
        with (version / "weights.bin").open("wb") as file:
            file.truncate(gib * GIB)


def _memory_findings(folder: Path, target: Target) -> list[Finding]:
    report = ModelRepository.from_directory(folder).check(target, is_packed=False)
    return [each for each in report.findings if each.code in CODES]


def _server(gpus: int = 1) -> Target:
    return Target.named("server", gpu_count=gpus, gpu_memory_mib=A10G, memory_gib=16)


def _group(text: str) -> str:
    return f"instance_group [ {{ {text} }} ]\n"


@pytest.mark.parametrize(
    ("gib", "config", "gpus", "reported"),
    [
        (26, "", 1, [WEIGHTS]),
        (20, "", 1, []),
        (3, _group("count: 10 kind: KIND_GPU"), 1, [WEIGHTS]),
        (3, _group("count: 7 kind: KIND_GPU"), 1, []),
        (3, _group("count: 10"), 1, [WEIGHTS]),
        (3, _group("count: 10 kind: KIND_MODEL"), 1, []),
        (12, _group("gpus: [ 0 ]") * 2, 2, [WEIGHTS]),
        (12, _group("gpus: [ 0 ]") + _group("gpus: [ 1 ]"), 2, []),
        (3, _group("count: 10 kind: KIND_CPU"), 1, [HOST]),
        (3, _group("count: 4 kind: KIND_CPU"), 1, []),
    ],
)
def test_external_weights_count_for_each_instance(
    gib: int, config: str, gpus: int, reported: list[str], tmp_path: Path
) -> None:
    """ONNX weights count with their external data, once for each instance, where it runs."""
    _onnx(tmp_path / "m", gib, config)
    assert [each.code for each in _memory_findings(tmp_path, _server(gpus))] == reported


def test_the_largest_parts_are_named(tmp_path: Path) -> None:
    """The warning has the sum, the limit and the three largest parts."""
    for name, gib in (("a", 12), ("b", 9), ("c", 4), ("d", 1)):
        _onnx(tmp_path / name, gib, "")
    (finding,) = _memory_findings(tmp_path, _server())
    assert finding.message == (
        "the models need at least 26.2 GiB of GPU 0, which has 22.4 GiB: a: weights 12.0 GiB; "
        "b: weights 9.0 GiB; c: weights 4.0 GiB"
    )


def test_a_multi_model_endpoint_loads_one_archive(tmp_path: Path) -> None:
    """Models of other archives do not count, since SageMaker can unload them."""
    for name in ("a", "b", "c"):
        _onnx(tmp_path / name, 12, "")
    target = Target.named("sagemaker-multi-model", instance_type="ml.g5.xlarge")
    assert _memory_findings(tmp_path, target) == []
    assert _memory_findings(tmp_path, _server()) != []


def test_only_loaded_models_count(tmp_path: Path) -> None:
    """A server that loads one model by name needs memory for that model."""
    for name in ("a", "b"):
        _onnx(tmp_path / name, 12, "")
    target = Target.named("server", gpu_count=1, gpu_memory_mib=A10G, load_models=("a",))
    assert _memory_findings(tmp_path, target) == []


def test_absent_weights_are_not_known(tmp_path: Path) -> None:
    """A model whose external data is elsewhere counts nothing."""
    _onnx(tmp_path / "m", 26, "", has_data=False)
    assert _memory_findings(tmp_path, _server()) == []


@pytest.mark.parametrize(("backend", "reported"), [("tensorrt", 0), ("pytorch", 1)])
def test_instances_share_a_plan(backend: str, reported: int, tmp_path: Path) -> None:
    """The instances on a GPU share the engine of TensorRT; each has its own PyTorch module."""
    name = {"tensorrt": "model.plan", "pytorch": "model.pt"}[backend]
    version = tmp_path / "m" / "1"
    version.mkdir(parents=True)
    with (version / name).open("wb") as file:
        file.truncate(5 * GIB)
    groups = _group("count: 6 kind: KIND_GPU")
    (tmp_path / "m" / "config.pbtxt").write_text(f'backend: "{backend}"\n{groups}')
    assert len(_memory_findings(tmp_path, _server())) == reported


def test_shared_weights_of_pytorch_count_once(tmp_path: Path) -> None:
    """``ENABLE_WEIGHT_SHARING`` makes the instances on a GPU use one module."""
    version = tmp_path / "m" / "1"
    version.mkdir(parents=True)
    with (version / "model.pt").open("wb") as file:
        file.truncate(5 * GIB)
    sharing = 'parameters { key: "ENABLE_WEIGHT_SHARING" value { string_value: "true" } }\n'
    config = 'backend: "pytorch"\n' + _group("count: 6") + sharing
    (tmp_path / "m" / "config.pbtxt").write_text(config)
    assert _memory_findings(tmp_path, _server()) == []


@pytest.mark.parametrize(
    ("declared", "reported"),
    [
        ("gpu_mib = 12000", [GPU]),
        ("gpu_mib = 11000", []),
        ("host_mib = 9000", [HOST]),
        ("host_mib = 7900", []),
    ],
)
def test_declared_memory_counts_for_each_instance(
    declared: str, reported: list[str], tmp_path: Path
) -> None:
    """What ``triton-models.toml`` declares of a Python model counts once for each instance."""
    version = tmp_path / "m" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text("class TritonPythonModel:\n    def execute(self, r): ...\n")
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "python"\n' + _group("count: 2"))
    (tmp_path / "triton-models.toml").write_text(f"[memory]\nm = {{ {declared} }}\n")
    assert [each.code for each in _memory_findings(tmp_path, _server())] == reported


def test_declared_memory_is_a_number(tmp_path: Path) -> None:
    """Another value is refused with its place and an example."""
    _onnx(tmp_path / "m", 1, "")
    (tmp_path / "triton-models.toml").write_text('[memory]\nm = { gpu_mib = "3g" }\n')
    with pytest.raises(InvalidValueError, match="a number of MiB"):
        ModelRepository.from_directory(tmp_path)


@pytest.mark.parametrize(("memory", "reported"), [({}, [HOST]), ({"memory_gib": 8}, [])])
def test_kserve_limit_is_named(memory: dict[str, Any], reported: list[str], tmp_path: Path) -> None:
    """KServe's runtime has 2 GiB unless the InferenceService has another limit."""
    _onnx(tmp_path / "m", 3, _group("count: 1 kind: KIND_CPU"))
    target = Target.named("kserve", gpu_count=0, **memory)
    found = _memory_findings(tmp_path, target)
    assert [each.code for each in found] == reported
    assert all("resources.limits.memory" in each.hint for each in found)


def test_sums_of_the_same_size_in_gib_are_in_mib(tmp_path: Path) -> None:
    """The message shows that the sum is larger than what there is."""
    _onnx(tmp_path / "m", 8, _group("count: 2 kind: KIND_CPU"))
    (finding,) = _memory_findings(tmp_path, _server(gpus=0))
    assert "16413 MiB of the host, which has 16384 MiB" in finding.message
