"""Operators that ONNX Runtime does not implement on the CPU, and what it infers of a model."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from check_examples.onnx_models import model, node, relu, tensor
from onnx import TensorProto, helper
from onnx.shape_inference import infer_shapes

from triton_model_check.facts.backend_releases import has_kernel
from triton_model_check.model_files import describe, onnx_inference
from triton_model_check.model_files.onnx_kernels import missing_kernel

NEWEST = "1.28.0"


def _one(
    operator: str, data_type: int = TensorProto.FLOAT, opset: int = 13, domain: str = ""
) -> bytes:
    opsets = {"": opset, **({domain: 1} if domain else {})}
    values = [tensor("X", data_type)], [tensor("Y", data_type)]
    return model("", [node(operator, ["X"], ["Y"], domain)], *values, opsets=opsets)


def _sequence(data_type: int) -> bytes:
    nodes = [
        node("SequenceConstruct", ["X", "X"], ["S"]),
        helper.make_node("ConcatFromSequence", ["S"], ["Y"], axis=1),
    ]
    return model("", nodes, [tensor("X", data_type)], [tensor("Y", data_type, ("b", 8))])


def _branches(operator: str) -> bytes:
    """Return a model whose operator is in the branches of an If, and reads a value from outside."""
    branch = helper.make_graph(
        [helper.make_node(operator, ["X"], ["T"])], "branch", [], [tensor("T", TensorProto.DOUBLE)]
    )
    chosen = helper.make_node("If", ["C"], ["Y"], then_branch=branch, else_branch=branch)
    inputs = [
        tensor("X", TensorProto.DOUBLE),
        helper.make_tensor_value_info("C", TensorProto.BOOL, []),
    ]
    return model("", [chosen], inputs, [tensor("Y", TensorProto.DOUBLE)])


def _shape_of(data_type: int) -> bytes:
    inputs, outputs = [tensor("X", data_type, (2, 4))], [tensor("Y", TensorProto.INT64, (2,))]
    return model("", [node("Shape", ["X"], ["Y"])], inputs, outputs, opsets={"": 19})


def _group_normalization() -> bytes:
    inputs = [tensor("X", dims=("b", 4, 2)), *(tensor(name, dims=(2,)) for name in "SB")]
    norm = helper.make_node("GroupNormalization", ["X", "S", "B"], ["Y"], num_groups=2)
    return model("", [norm], inputs, [tensor("Y", dims=("b", 4, 2))], opsets={"": 18})


def _batch_first() -> bytes:
    shapes: dict[str, tuple[int | str, ...]] = {"X": ("b", 3, 2), "W": (1, 5, 2), "R": (1, 5, 5)}
    inputs = [tensor(name, dims=dims) for name, dims in shapes.items()]
    recurrent = helper.make_node("RNN", list(shapes), ["Y"], hidden_size=5, layout=1)
    return model("", [recurrent], inputs, [tensor("Y", dims=("b", 3, 1, 5))], opsets={"": 14})


def _grid_sample() -> bytes:
    inputs = [tensor("X", dims=("b", 1, 4, 4)), tensor("G", dims=("b", 6, 6, 2))]
    sample = helper.make_node("GridSample", ["X", "G"], ["Y"], mode="linear")
    return model("", [sample], inputs, [tensor("Y", dims=("b", 1, 6, 6))], opsets={"": 17})


MODELS = {
    "float": (_one("Relu"), True),
    "double": (_one("Sinh", TensorProto.DOUBLE), False),
    "half, which is cast to float": (_one("Sinh", TensorProto.FLOAT16), True),
    "half, before there was a cast": (_one("Sigmoid", TensorProto.FLOAT16, 1), False),
    "old operator set": (_one("Relu", opset=5), False),
    "fixed function": (_one("Selu", TensorProto.DOUBLE, 18), True),
    "function that is too new": (_one("Selu", TensorProto.DOUBLE, 13), False),
    "function whose operators have changed": (_one("LeakyRelu", TensorProto.DOUBLE, 21), False),
    "function that depends on its attributes": (_one("Clip", TensorProto.INT16, 13), True),
    "sequence": (_sequence(TensorProto.FLOAT), True),
    "branches": (_branches("Erf"), False),
    "another domain": (_one("Gelu", domain="com.microsoft"), True),
    "shape of a fixed size": (_shape_of(TensorProto.FLOAT8E4M3FN), True),
    "deprecated by the package": (_group_normalization(), True),
    "batch first": (_batch_first(), False),
    "new mode in an old operator set": (_grid_sample(), False),
}

#: Operators that this release refuses or loads, which depends on what it replaces them by.
DOUBTFUL = {
    "function without a kernel for 16 bits": _one("LeakyRelu", TensorProto.BFLOAT16, 16),
    "function that depends on its types": _one("Bernoulli", opset=22),
    "function of a function": _one("Mish", TensorProto.DOUBLE, 19),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_kernels_are_those_of_onnx_runtime(name: str) -> None:
    """An operator has a kernel if ONNX Runtime loads a model of it on the CPU."""
    content, loads = MODELS[name]
    inferred = infer_shapes(onnx.load_model_from_string(content))
    missing = missing_kernel(inferred, NEWEST)
    assert (missing is None) == loads
    assert missing is None or missing.is_certain
    with (
        nullcontext()
        if loads
        else pytest.raises(Exception, match=r"NOT_IMPLEMENTED|INVALID|Exception during")
    ):
        onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", sorted(DOUBTFUL))
def test_operator_that_the_runtime_replaces_may_have_no_kernel(name: str, tmp_path: Path) -> None:
    """A function without kernels is neither refused nor called good without the runtime."""
    content = DOUBTFUL[name]
    missing = missing_kernel(infer_shapes(onnx.load_model_from_string(content)), NEWEST)
    assert missing is not None
    assert not missing.is_certain
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    described = describe(path, on_cpu=True)
    assert described.faults == ()
    assert any("may refuse it on the CPU" in line for line in described.not_checked)


@pytest.mark.parametrize(
    ("release", "expected"), [("1.24.4", True), ("1.25.0", False), ("1.27.0", None)]
)
def test_inverse_one_sided_transform_depends_on_the_release(
    release: str, expected: bool | None
) -> None:
    """Releases up to 1.24 certainly refuse it, 1.27 loads it, and those between were not asked."""
    attributes: dict[str, Any] = {"inverse": 1, "onesided": 1}
    transform = helper.make_node("DFT", ["X"], ["Y"], **attributes)
    shapes = {"X": ("b", 4, 2), "Y": ("b", 6, 1)}
    inputs, outputs = ([tensor(name, dims=shapes[name])] for name in "XY")
    proto = onnx.load_model_from_string(model("", [transform], inputs, outputs, opsets={"": 17}))
    missing = missing_kernel(proto, release)
    assert (missing and missing.is_certain) == expected


def test_own_functions_and_constants_have_no_kernel() -> None:
    """Operators that the model defines, constants and unknown operators are not looked up."""
    function = helper.make_function(
        "mine", "Sinh", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 13)]
    )
    proto = onnx.load_model_from_string(_one("Sinh", TensorProto.DOUBLE, domain="mine"))
    proto.functions.append(function)
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])
    proto.graph.node.append(helper.make_node("Constant", [], ["K"], value=value))
    proto.graph.node.append(node("NoSuchOperator", ["X"], ["Z"]))
    assert missing_kernel(proto, NEWEST) is None


@pytest.mark.parametrize(
    ("release", "expected"),
    [("1.16.3", False), ("1.19.2", False), ("1.21.0", True), (NEWEST, True)],
)
def test_kernels_depend_on_the_release(release: str, expected: bool) -> None:
    """A release has the kernels that were added in it or before."""
    assert has_kernel("ai.onnx", "Add", 14, {"T": "uint8"}, release) == expected


@pytest.mark.parametrize(
    ("release", "expected"), [("1.24.4", False), ("1.25.0", None), ("1.27.0", True)]
)
def test_release_between_two_that_were_asked_may_have_the_kernels_of_the_later(
    release: str, expected: bool | None
) -> None:
    """BitCast is in 1.27 and not in 1.24; 1.25 was not asked, so this is not known."""
    assert has_kernel("ai.onnx", "BitCast", 26, {}, release) is expected


@pytest.mark.parametrize(("release", "expected"), [("1.15.1", None), ("1.16.0", True)])
def test_older_release_has_only_the_kernels_of_models_that_it_loads(
    release: str, expected: bool | None
) -> None:
    """1.15 reads operator set 19 and has no kernel for Reshape of it; real models use it."""
    assert has_kernel("ai.onnx", "Reshape", 19, {"T": "float"}, release) is expected
    assert has_kernel("ai.onnx", "Reshape", 14, {"T": "float"}, release) is True


def test_only_models_on_the_cpu_need_its_kernels(tmp_path: Path) -> None:
    """A GPU may implement what the CPU does not: the model is not called good."""
    path = tmp_path / "model.onnx"
    path.write_bytes(_one("Sinh", TensorProto.DOUBLE))
    described = describe(path)
    assert described.faults == ()
    assert ["on a GPU" in each for each in described.not_checked] == [True]
    (fault,) = describe(path, on_cpu=True).faults
    assert (fault.code, "Sinh(9)" in fault.message, "GPU" in fault.hint) == (
        "onnx-operator",
        True,
        True,
    )


# --- what is inferred -----------------------------------------------------------------------------


def _inferred(content: bytes, release: str = "") -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        onnx_inference.infer_shapes(f"{release}\n".encode() + content)
    )
    return answer


def test_kernel_is_looked_for_on_the_cpu_only() -> None:
    """Without a release of ONNX Runtime, kernels are not looked for."""
    content = _one("Sinh", TensorProto.DOUBLE)
    assert _inferred(content)["missing_kernel"] is None
    assert (
        _inferred(content, "1.19.2")["missing_kernel"]
        == "Could not find an implementation for Sinh(9)"
    )


def _chain(hidden: Any, last: Any) -> bytes:
    proto = onnx.load_model_from_string(
        model("", [node("Relu", ["X"], ["H"]), node("Relu", ["H"], ["Y"])], [tensor("X")], [last])
    )
    proto.graph.value_info.append(hidden)
    return proto.SerializeToString()


def test_contradiction_between_operators_leaves_shapes_open() -> None:
    """ONNX Runtime accepts a wrong shape between operators; which shapes follow is not known."""
    answer = _inferred(_chain(tensor("H", dims=("b", 5)), tensor("Y", dims=("b", 6))))
    assert ("shapes" in answer, answer["unclear"]) == (False, ["Y"])


def test_rank_of_an_output_may_be_inferred_again() -> None:
    """A declared rank that is wrong counts only if ONNX Runtime does not optimize the graph."""
    wrong = tensor("Y", dims=("b", 4, 1))
    assert _inferred(_chain(tensor("H"), wrong))["unclear"] == ["Y"]
    single = model("", [node("Relu", ["X"], ["Y"])], [tensor("X")], [wrong])
    assert _inferred(single)["shapes"] == {"Y": None}


@pytest.mark.parametrize("equation", ["bi,bi->bi", "bi,bi->ib"])
def test_less_precise_operators_of_the_runtime(equation: str) -> None:
    """Where ONNX Runtime infers less than the package,
    only shapes that the file declares are certain.
    """
    einsum = helper.make_node("Einsum", ["X", "X"], ["Y"], equation=equation)
    declared = (
        tensor("Y", dims=("b", 4)) if equation.endswith("bi") else tensor("Y", dims=("b", "c"))
    )
    answer = _inferred(model("", [einsum], [tensor("X")], [declared]))
    assert ("shapes" in answer) == equation.endswith("->bi")


@pytest.mark.parametrize(("size", "is_certain"), [(3, True), ("b", False)])
def test_squeeze_without_axes_is_certain_for_fixed_sizes(
    size: int | str, *, is_certain: bool
) -> None:
    """Some releases remove a variable size, so the declared shape is not certain either."""
    squeeze = node("Squeeze", ["X"], ["Y"])
    content = model("", [squeeze], [tensor("X", dims=(size, 1))], [tensor("Y", dims=(size,))])
    assert ("shapes" in _inferred(content)) == is_certain


def _without_else() -> bytes:
    proto = onnx.load_model_from_string(_branches("Relu"))
    del proto.graph.node[0].attribute[1]
    return proto.SerializeToString()


def _shape_elsewhere() -> bytes:
    nodes = [node("Reshape", ["X", "S"], ["Y"])]
    proto = onnx.load_model_from_string(model("", nodes, [tensor("X")], [tensor("Y")]))
    shape = helper.make_tensor("S", TensorProto.INT64, [2], [-1, 4])
    shape.ClearField("int64_data")
    shape.data_location = TensorProto.EXTERNAL
    shape.external_data.add(key="location", value="w.bin")
    proto.graph.initializer.append(shape)
    return proto.SerializeToString()


SEQUENCE = model("", [node("SequenceConstruct", ["X"], ["Y"])], [tensor("X")], [tensor("Y")])


@pytest.mark.parametrize(
    ("content", "member", "words"),
    [
        (_chain(tensor("H", TensorProto.DOUBLE), tensor("Y")), "fault", "elem type"),
        (_without_else(), "fault", "_branch"),
        (SEQUENCE, "fault", "is declared as a tensor"),
        (_shape_elsewhere(), "not_checked", "external data"),
    ],
    ids=[
        "type between operators",
        "If without else_branch",
        "sequence for a tensor",
        "shape in another file",
    ],
)
def test_what_onnx_runtime_does_not_accept_is_a_fault(
    content: bytes, member: str, words: str
) -> None:
    """A fault has its reason; a shape in another file is not read, so nothing is inferred."""
    assert words in _inferred(content)[member]


def test_type_that_is_newer_than_the_operator_set_is_not_judged() -> None:
    """ONNX Runtime 1.24 casts to 2 bits in operator set 19; the package knows this since 25."""
    cast = helper.make_node("Cast", ["X"], ["Y"], to=TensorProto.INT2)
    content = model("", [cast], [tensor("X")], [tensor("Y", TensorProto.INT2)], opsets={"": 19})
    assert "unsupported type" in _inferred(content)["not_checked"]


def test_sparse_tensor_is_not_judged() -> None:
    """The package does not know that ONNX Runtime makes a sparse initializer dense."""
    proto = onnx.load_model_from_string(relu())
    proto.graph.node[0].CopyFrom(node("Add", ["X", "W"], ["Y"]))
    sparse = proto.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(helper.make_tensor("W", TensorProto.FLOAT, [1], [1.0]))
    sparse.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [1], [2]))
    assert _inferred(proto.SerializeToString()).keys() == {"not_checked"}
