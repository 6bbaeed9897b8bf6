"""Which weights are certain enough for an error, in files of each format."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from check_examples import EXAMPLES, write
from engines import memory, sparse
from onnx import NodeProto, TensorProto, helper

from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

MIB = 2**20
CODE = "target-gpu-weights-memory"
ERROR, WARNING = "error", "warning"
"""What the check says of the GPU: weights that cannot fit, or a sum that may not."""


def _gpu_findings(folder: Path, mebibytes: int, **known: Any) -> list[str]:
    target = Target.named("server", gpu_count=1, gpu_memory_mib=mebibytes, **known)
    report = ModelRepository.from_directory(folder).check(target, is_packed=False)
    return [str(each.severity) for each in report.findings if "-gpu-" in each.code]


def _config(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(text)


# --- ONNX -----------------------------------------------------------------------------------------

ROWS = COLUMNS = 16 * 1024
MATRIX_MIB = 1024
"""MiB of a matrix of this many rows and columns."""


def _matrix(name: str) -> TensorProto:
    """Declare a matrix of 1 GiB at the beginning of ``weights.bin``, or at its place by name."""
    found = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS])
    found.data_location = TensorProto.EXTERNAL
    length = MATRIX_MIB * MIB
    offset = 0 if name.startswith("W") else length
    for key, value in (("location", "weights.bin"), ("offset", offset), ("length", length)):
        found.external_data.add(key=key, value=str(value))
    return found


def _onnx(folder: Path, nodes: Sequence[NodeProto], matrices: Sequence[TensorProto]) -> None:
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["batch", ROWS])]
    outputs = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["batch", "columns"])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, matrices)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    sparse(folder / "1" / "weights.bin", 2)
    (folder / "1" / "model.onnx").write_bytes(model.SerializeToString())
    _config(folder, 'backend: "onnxruntime"\nmax_batch_size: 8\n')


def _node(operator: str, inputs: str, output: str) -> NodeProto:
    return helper.make_node(operator, inputs.split(), [output])


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        pytest.param([_node("MatMul", "X W", "Y")], ERROR, id="product"),
        pytest.param([_node("Gemm", "X W", "Y")], ERROR, id="gemm"),
        pytest.param(
            [_node("Relu", "X", "H"), _node("MatMul", "H W", "Y")], ERROR, id="later product"
        ),
        pytest.param([_node("Identity", "X", "Y")], None, id="not read"),
        pytest.param(
            [_node("MatMul", "X W", "unread"), _node("Identity", "X", "Y")],
            WARNING,
            id="no output needs it",
        ),
        pytest.param(
            [
                _node("MatMul", "X W", "H"),
                _node("Shape", "H", "sizes"),
                _node("Expand", "X sizes", "Y"),
            ],
            WARNING,
            id="only its shape is needed",
        ),
        pytest.param(
            [
                _node("MatMul", "W W", "square"),
                _node("ReduceMean", "square", "mean"),
                _node("Add", "X mean", "Y"),
            ],
            WARNING,
            id="computed at load",
        ),
        pytest.param(
            [_node("Cast", "W", "cast"), _node("MatMul", "X cast", "Y")], WARNING, id="cast at load"
        ),
    ],
)
def test_only_matrices_that_are_needed_at_each_call_are_certain(
    nodes: list[NodeProto], said: str | None, tmp_path: Path
) -> None:
    """ONNX Runtime may remove other initializers or make smaller ones of them."""
    for node in nodes:
        if node.op_type == "Cast":
            node.attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
    _onnx(tmp_path / "m", nodes, [_matrix("W")])
    assert _gpu_findings(tmp_path, MATRIX_MIB - 1) == ([said] if said else [])


@pytest.mark.parametrize(("names", "fits"), [(("W", "W2"), True), (("W", "V"), False)])
def test_matrices_at_one_place_of_a_file_count_once(
    names: tuple[str, str], fits: bool, tmp_path: Path
) -> None:
    """Tied weights are the same bytes of the file with external data."""
    nodes = [_node("MatMul", f"X {names[0]}", "H"), _node("MatMul", f"H {names[1]}", "Y")]
    _onnx(tmp_path / "m", nodes, [_matrix(name) for name in names])
    said = _gpu_findings(tmp_path, MATRIX_MIB + 512)
    assert said == ([] if fits else [ERROR])


def test_an_accelerator_makes_no_error(tmp_path: Path) -> None:
    """TensorRT builds an engine with weights of its own size in place of ONNX Runtime's."""
    _onnx(tmp_path / "m", [_node("MatMul", "X W", "Y")], [_matrix("W")])
    accelerator = 'gpu_execution_accelerator { name: "tensorrt" }'
    config = (
        f'backend: "onnxruntime"\noptimization {{ execution_accelerators {{ {accelerator} }} }}'
    )
    _config(tmp_path / "m", config)
    assert _gpu_findings(tmp_path, MATRIX_MIB - 1) == []


# --- TorchScript and TensorRT ---------------------------------------------------------------------


def _torchscript(path: Path, mebibytes: int) -> None:
    """Write an archive with code of 2 MiB, and with a tensor that is all zeros."""
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02.")
        archive.writestr("m/code/__torch__.py", "class M(Module):\n" + "#" * 2 * MIB)
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/data/0", bytes(mebibytes * MIB))


@pytest.mark.parametrize(
    ("groups", "gpu_mib", "said"),
    [
        ("", 3, [ERROR]),
        ("", 5, [WARNING]),
        ("instance_group { count: 2 }", 7, [ERROR]),
        ("instance_group { kind: KIND_CPU }", 3, [WARNING]),
        ("instance_group { kind: KIND_MODEL }", 3, [WARNING]),
    ],
)
def test_tensors_of_a_torchscript_archive_are_certain(
    groups: str, gpu_mib: int, said: list[str], tmp_path: Path
) -> None:
    """Its tensors are on the GPU of each instance; its code is not."""
    _torchscript(tmp_path / "m" / "1" / "model.pt", 4)
    _config(tmp_path / "m", f'backend: "pytorch"\n{groups}\n')
    assert _gpu_findings(tmp_path, gpu_mib) == said


def _plan(folder: Path, text: str) -> None:
    sparse(folder / "1" / "model.plan", 3)
    with (folder / "1" / "model.plan").open("r+b") as file:
        file.write(b"ftrt")
    _config(folder, f'backend: "tensorrt"\n{text}')


@pytest.mark.parametrize(("gpu_mib", "said"), [(2_500, [ERROR]), (3_000, [WARNING])])
def test_a_plan_is_certain_without_what_is_beside_its_weights(
    gpu_mib: int, said: list[str], tmp_path: Path
) -> None:
    """256 MiB of a plan may be kernels and a runtime."""
    _plan(tmp_path / "m", "")
    assert _gpu_findings(tmp_path, gpu_mib) == said


@pytest.mark.parametrize(("dims", "said"), [("4", []), ("-1", [WARNING])])
def test_engines_of_variable_shapes_are_not_shared(
    dims: str, said: list[str], tmp_path: Path
) -> None:
    """Each instance has its own engine. TensorRT accepts -1 for a size, so this is no error."""
    tensors = "".join(
        f'{side} [ {{ name: "{side}" data_type: TYPE_FP32 dims: [ {dims} ] }} ]\n'
        for side in ("input", "output")
    )
    _plan(tmp_path / "m", f"{tensors}instance_group {{ count: 3 }}\n")
    assert _gpu_findings(tmp_path, 8_000) == said


def test_a_manifest_says_that_the_batch_is_variable(tmp_path: Path) -> None:
    """The configuration does not show a variable batch, and the manifest of the plan does."""
    root = write(EXAMPLES["plan-max-batch-size"].failing, tmp_path / "models")
    config = root / "m" / "config.pbtxt"
    config.write_text(f"{config.read_text()}instance_group {{ count: 3 }}\n")
    assert "-1" not in config.read_text()
    (part,) = [each for each in memory(root).parts if each.model == "m"]
    assert part.what == "weights of 3 instances"


# --- what is loaded together ----------------------------------------------------------------------


def _two_plans(folder: Path) -> None:
    for name in ("a", "b"):
        _plan(folder / name, "")


def _ensemble(folder: Path) -> None:
    """Write an ensemble of both plans; its tensors are of no interest here."""
    _two_plans(folder)
    steps = "".join(f'step {{ model_name: "{name}" model_version: -1 }}\n' for name in "ab")
    _config(folder / "both", f'platform: "ensemble"\nensemble_scheduling {{ {steps} }}\n')
    (folder / "both" / "1").mkdir()


@pytest.mark.parametrize(
    ("write", "known", "said"),
    [
        (_two_plans, {}, WARNING),
        (_two_plans, {"load_models": ("a", "b")}, ERROR),
        (_ensemble, {}, ERROR),
    ],
)
def test_weights_of_models_that_are_certainly_loaded_together(
    write: Callable[[Path], None], known: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """A server may load only some models of a repository, but all steps of an ensemble."""
    write(tmp_path)
    assert _gpu_findings(tmp_path, 5_000, **known) == [said]


def test_a_limit_of_loads_is_named(tmp_path: Path) -> None:
    """Triton rejects an instance after which more of the GPU is used than the limit allows."""
    _plan(tmp_path / "m", "")
    target = Target.named(
        "sagemaker", gpu_count=1, gpu_memory_mib=4_000, model_load_gpu_limit=0.5, default_model="m"
    )
    report = ModelRepository.from_directory(tmp_path).check(target, is_packed=False)
    (finding,) = [each for each in report.findings if each.code == CODE]
    assert "2.8 GiB of GPU 0, of which model_load_gpu_limit allows 2.0 GiB" in finding.message
