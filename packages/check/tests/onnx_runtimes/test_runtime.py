"""What the installed ONNX Runtime decides, in its process with limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from check_examples.onnx_models import model, node, tensor
from installed import use_runtime
from onnx import TensorProto, helper, numpy_helper

from triton_model_check.model_config.target import Target
from triton_model_check.model_files import describe
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.kept.kept_repository import KeptRepository
from triton_model_check.onnx_runtimes.asking import minor_release
from triton_model_check.onnx_runtimes.runtime import NotAsked, Runtime, find_runtime

VERSION = onnxruntime.__version__
X, Y = [tensor("X")], [tensor("Y")]
RELU = model("", [node("Relu", ["X"], ["Y"])], X, Y)
# An operator that ONNX Runtime implements on GPUs only.
NOT_ON_CPU = model(
    "",
    [helper.make_node("NhwcConv", ["X", "W"], ["Y"], domain="com.microsoft")],
    [tensor("X", dims=("b", 4, 4, 2)), tensor("W", dims=(1, 1, 1, 2))],
    [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
    opsets={"": 17, "com.microsoft": 1},
)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    use_runtime(monkeypatch)


def folded() -> bytes:
    """Return a model whose output shape ONNX Runtime computes: [-1, 6]."""
    nodes = [node("Neg", ["S"], ["T"]), node("Reshape", ["X", "T"], ["Y"])]
    sizes = [numpy_helper.from_array(np.array([1, -6]), "S")]
    inputs = [tensor("X", dims=("b", 2, 3))]
    output = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ("a", "b"))]
    return model("", nodes, inputs, output, initializers=sizes, opsets={"": 17})


def written(folder: Path, content: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return path


def runtime() -> Runtime:
    found = find_runtime(minor_release(VERSION), "auto")
    assert isinstance(found, Runtime)
    return found


@pytest.mark.parametrize(("level", "size"), [(0, 6), (-1, 6), (1, 6), (2, -1)])
def test_shape_is_that_of_the_session(level: int, size: int, tmp_path: Path) -> None:
    """An output has the shape that ONNX Runtime infers with the configured optimization."""
    path = written(tmp_path, folded())
    found = describe(path, graph_level=level, onnx_runtime="auto")
    assert found.outputs[0].shape == (-1, size)
    assert (found.has_inferred_shapes, found.has_batch_dimension) == (True, True)
    assert found.not_checked == ()


def test_right_dims_are_accepted_and_wrong_ones_are_not(tmp_path: Path) -> None:
    """A check compares dims with the shape that ONNX Runtime computes."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    written(tmp_path / "m" / "1", folded())
    for size, verdict in ((6, "loads"), (-1, "rejected")):
        (tmp_path / "m" / "config.pbtxt").write_text(
            'backend: "onnxruntime" max_batch_size: 4\n'
            'input [{ name: "X" data_type: TYPE_FP32 dims: [ 2, 3 ] }]\n'
            f'output [{{ name: "Y" data_type: TYPE_FP32 dims: [ {size} ] }}]'
        )
        repository = ModelRepository.from_directory(tmp_path)
        report = repository.check(Target("server", onnx_runtime="auto"), is_packed=False)
        assert report.verdict == verdict, report.findings


def test_refusal_has_the_message_and_the_version(tmp_path: Path) -> None:
    """A model that only ONNX Runtime can refuse is refused with its own words."""
    inner = helper.make_graph(
        [helper.make_node("Gemm", ["X", "W"], ["Z"])],
        "g",
        [],
        [helper.make_tensor_value_info("Z", TensorProto.FLOAT, None)],
    )
    weights = numpy_helper.from_array(np.ones((3, 2), np.float32), "W")
    condition = numpy_helper.from_array(np.array(True), "C")
    branches = helper.make_node("If", ["C"], ["Y"], then_branch=inner, else_branch=inner)
    output = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)]
    content = model("", [branches], X, output, initializers=[weights, condition])
    path = written(tmp_path, content)
    assert describe(path).faults == ()
    (fault,) = describe(path, onnx_runtime="auto").faults
    assert fault.code == "onnx-invalid-graph"
    assert fault.message.startswith(
        f"This is an invalid model: ONNX Runtime {VERSION} refuses it: "
    )
    assert "Gemm" in fault.message


def test_own_rule_does_not_refuse_what_the_runtime_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the runtime loads a model, a rule of ours about its graph does not count."""
    path = written(tmp_path, model("", [node("Relu", ["X"], ["Y"])], X, Y, opsets={"": 23}))
    use_runtime(monkeypatch)
    assert describe(path, "24.10", onnx_runtime="auto").faults == ()


@pytest.mark.parametrize("on_cpu", [True, False])
def test_operator_that_only_a_gpu_may_have_is_an_error_on_the_cpu_only(
    on_cpu: bool, tmp_path: Path
) -> None:
    """NOT_IMPLEMENTED is an error for the CPU, and is not checked for a GPU."""
    found = describe(written(tmp_path, NOT_ON_CPU), on_cpu=on_cpu, onnx_runtime="auto")
    codes = [fault.code for fault in found.faults]
    assert codes == (["onnx-operator"] if on_cpu else [])
    assert any("on a GPU" in line for line in found.not_checked) == (not on_cpu)


def test_library_of_operators_is_not_asked_about(tmp_path: Path) -> None:
    """A model with a library of custom operators is not decided without the library."""
    own = helper.make_node("Own", ["X"], ["Y"], domain="mine")
    path = written(tmp_path, model("", [own], X, Y, opsets={"": 17, "mine": 1}))
    found = describe(path, has_op_library=True, onnx_runtime="auto")
    assert found.faults == ()
    assert found.not_checked


def test_release_that_is_not_there_is_named_where_it_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not certain names the release to ask and how; what is certain does not."""
    use_runtime(monkeypatch, "0.1.0")
    unsure = describe(written(tmp_path, folded()), onnx_runtime="auto").not_checked
    assert unsure[1] == (
        "ONNX Runtime 0.1 was not asked: it is not installed; set --onnx-runtime fetch to fetch "
        "it from PyPI"
    )
    use_runtime(monkeypatch, "1.22.0")
    assert describe(written(tmp_path, RELU), onnx_runtime="auto").not_checked == ()


def test_model_with_more_values_than_are_read_is_described_by_the_runtime(tmp_path: Path) -> None:
    """Inputs and outputs of a file that is not read here are those of the session."""
    values = np.arange(300_000, dtype=np.int64).tolist()
    encoder = helper.make_node(
        "LabelEncoder",
        ["X"],
        ["Y"],
        domain="ai.onnx.ml",
        keys_int64s=values,
        values_int64s=values,
    )
    number = TensorProto.INT64
    inputs, outputs = [tensor("X", number)], [tensor("Y", number)]
    content = model("", [encoder], inputs, outputs, opsets={"": 17, "ai.onnx.ml": 3})
    path = written(tmp_path, content)
    assert describe(path).outputs == ()
    found = describe(path, onnx_runtime="auto")
    assert [each.shape for each in (*found.inputs, *found.outputs)] == [(-1, 4), (-1, 4)]
    assert found.not_checked == ()


def test_model_that_takes_too_much_memory_has_no_verdict() -> None:
    """A graph that fills the memory ends its process and is not refused; the next has an answer."""
    sizes = numpy_helper.from_array(np.array([1 << 20, 1 << 20]), "S")
    zeros = [node("ConstantOfShape", ["S"], ["Z"]), node("ReduceMax", ["Z"], ["M"])]
    total = node("Add", ["X", "M"], ["Y"])
    output = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)]
    hostile = model("", [*zeros, total], X, output, initializers=[sizes])
    found = runtime().ask(hostile)
    assert isinstance(found, NotAsked) or not found.error
    loaded = runtime().ask(RELU)
    assert not isinstance(loaded, NotAsked)
    assert loaded.outputs[0].dims == (-1, 4)


@pytest.mark.parametrize("is_random", [True, False])
def test_memory_follows_what_the_graph_generates(is_random: bool, tmp_path: Path) -> None:
    """A weight of 800 MB that a graph of a few bytes generates is not too much."""
    size = 100_000_000
    made = helper.make_node("ConstantOfShape", ["S"], ["Z"])
    if is_random:
        made = helper.make_node("RandomNormal", [], ["Z"], shape=[size], dtype=TensorProto.DOUBLE)
    nodes = [made, helper.make_node("ReduceMax", ["Z"], ["M"], keepdims=0)]
    if is_random:
        nodes.append(helper.make_node("Cast", ["M"], ["N"], to=TensorProto.FLOAT))
    nodes.append(node("Add", ["X", nodes[-1].output[0]], ["Y"]))
    sizes = numpy_helper.from_array(np.array([4 * size if not is_random else size]), "S")
    content = model("", nodes, X, Y, initializers=[sizes])
    found = describe(written(tmp_path, content), onnx_runtime="auto")
    assert (found.not_checked, found.outputs[0].shape) == ((), (-1, 4))


def test_findings_are_kept_for_the_runtime_that_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found without a runtime is not the answer once there is one."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    written(tmp_path / "m" / "1", folded())
    target = Target("server", onnx_runtime="auto")
    use_runtime(monkeypatch, "0.1.0")
    before = KeptRepository.from_directory(tmp_path).check(target, is_packed=False)
    use_runtime(monkeypatch)
    after = KeptRepository.from_directory(tmp_path).check(target, is_packed=False)
    assert before.not_checked
    assert after.not_checked == ()


def _ort_file(folder: Path, content: bytes) -> Path:
    """Write a model in ONNX Runtime's own format, as ONNX Runtime does."""
    path = folder / "model.ort"
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return path


def test_file_of_the_own_format_is_described_by_the_runtime(tmp_path: Path) -> None:
    """A file that ends with .ort has the inputs and outputs that the session has."""
    path = _ort_file(tmp_path, RELU)
    found = describe(path, onnx_runtime="auto")
    assert (found.format, found.faults, found.not_checked) == ("ort", (), ())
    assert [each.shape for each in (*found.inputs, *found.outputs)] == [(-1, 4), (-1, 4)]
    assert describe(path).not_checked == ("content not checked",)


@pytest.mark.parametrize(("dims", "verdict"), [("[ 4 ]", "loads"), ("[ 5 ]", "rejected")])
def test_configuration_is_compared_with_a_file_of_the_own_format(
    dims: str, verdict: str, tmp_path: Path
) -> None:
    """The dims of a model.ort count as those of a model.onnx."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    _ort_file(tmp_path / "m" / "1", RELU)
    tensors = (f'name: "{name}" data_type: TYPE_FP32 dims: {dims}' for name in "XY")
    (tmp_path / "m" / "config.pbtxt").write_text(
        'backend: "onnxruntime" max_batch_size: 4 default_model_filename: "model.ort"\n'
        f"input [{{ {next(tensors)} }}]\noutput [{{ {next(tensors)} }}]"
    )
    repository = ModelRepository.from_directory(tmp_path)
    report = repository.check(Target("server", onnx_runtime="auto"), is_packed=False)
    assert report.verdict == verdict, report.findings


def test_broken_file_of_the_own_format_is_refused_by_the_runtime(tmp_path: Path) -> None:
    """A file that begins like one of the own format is refused where the runtime refuses it."""
    path = tmp_path / "model.ort"
    path.write_bytes(b"\x10\0\0\0ORTM" + bytes(64))
    (fault,) = describe(path, onnx_runtime="auto").faults
    assert fault.code == "onnx-invalid-graph"
