"""What an ONNX file says of itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
from check_examples.onnx_models import ModelBytes, model, node, relu, tensor, with_default
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.model_files import describe, onnx_inference, onnx_shapes
from triton_model_check.model_files.model_file import ModelFile, ModelTensor
from triton_model_check.model_files.protobuf_wire import MessageFile
from triton_model_check.model_files.varint import encode_varint


def _described(content: bytes, folder: Path, image_version: str | None = None) -> ModelFile:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return describe(path, image_version)


def _fault(content: bytes, folder: Path, image_version: str | None = None) -> tuple[str, str]:
    (fault,) = _described(content, folder, image_version).faults
    return fault.code, fault.message


# --- the signature --------------------------------------------------------------------------------


def test_signature(tmp_path: Path) -> None:
    """Names, types, shapes, versions and the batch dimension."""
    found = _described(relu(), tmp_path)
    assert found.inputs == (ModelTensor("X", "TYPE_FP32", (-1, 4)),)
    assert found.outputs == (ModelTensor("Y", "TYPE_FP32", (-1, 4), has_certain_shape=True),)
    assert found.versions == {"ir": "8", "ai.onnx": "13"}
    assert (found.format, found.has_batch_dimension, found.faults) == ("onnx", True, ())


def test_input_with_a_default_is_optional(tmp_path: Path) -> None:
    """An input that is also an initializer is optional, from IR version 4 on."""
    inputs = _described(with_default(), tmp_path).inputs
    assert [(each.name, each.is_optional) for each in inputs] == [("X", False), ("K", True)]
    old = onnx.load_model_from_string(with_default())
    old.ir_version = 3
    assert [each.name for each in _described(old.SerializeToString(), tmp_path).inputs] == ["X"]


@pytest.mark.parametrize(
    ("data_type", "name"),
    [
        (TensorProto.UINT8, "TYPE_UINT8"),
        (TensorProto.FLOAT16, "TYPE_FP16"),
        (TensorProto.STRING, "TYPE_STRING"),
        (TensorProto.BFLOAT16, "TYPE_BF16"),
        (TensorProto.FLOAT8E4M3FN, ""),
    ],
)
def test_data_types(data_type: int, name: str, tmp_path: Path) -> None:
    """Types have Triton's names; those that Triton does not have are empty."""
    content = model(
        "", [node("Identity", ["X"], ["Y"])], [tensor("X", data_type)], [tensor("Y", data_type)]
    )
    assert _described(content, tmp_path).inputs[0].data_type == name


def test_shape_without_rank_is_none(tmp_path: Path) -> None:
    """A tensor without a shape has the shape None."""
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, None)]
    content = model("", [node("Relu", ["X"], ["Y"])], inputs, [tensor("Y")])
    assert _described(content, tmp_path).inputs[0].shape is None


# --- inferred shapes ------------------------------------------------------------------------------

FLATTENED = model(
    "Y = Flatten(X)",
    [node("Flatten", ["X"], ["Y"])],
    [tensor("X", dims=("batch", 2, 8))],
    [tensor("Y", dims=("batch", "features"))],
)
CUSTOM = model(
    "Y = com.microsoft:Gelu(X)",
    [node("Gelu", ["X"], ["Y"], "com.microsoft")],
    [tensor("X")],
    [tensor("Y", dims=("batch", "features"))],
    opsets={"": 13, "com.microsoft": 1},
)


def test_output_has_the_inferred_shape(tmp_path: Path) -> None:
    """An output that is declared with a variable size has the size that the graph gives."""
    found = _described(FLATTENED, tmp_path)
    assert found.outputs[0].shape == (-1, 16)
    assert found.has_inferred_shapes
    assert found.not_checked == ()


def test_without_the_onnx_package_the_declared_shape_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result says what was not checked, and how to check it."""
    monkeypatch.setattr(onnx_shapes, "_is_onnx_installed", lambda: False)
    found = _described(FLATTENED, tmp_path)
    assert (found.outputs[0].shape, found.has_inferred_shapes) == ((-1, -1), False)
    assert found.not_checked == (
        "operators and output shapes not checked: run `pip install 'triton-model-check[onnx]'`",
    )


def test_an_older_onnx_package_does_not_judge_newer_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with a newer operator set than the package knows is not refused."""
    monkeypatch.setattr(onnx_inference, "_newest_opset", lambda _: 7)
    answer = json.loads(onnx_inference.infer_shapes(b"\n" + relu()))
    assert answer.keys() == {"not_checked"}
    assert "is older than the model; upgrade it" in answer["not_checked"]


def test_shapes_behind_other_operators_are_not_inferred(tmp_path: Path) -> None:
    """Only ONNX Runtime knows the shapes of its own operators."""
    found = _described(CUSTOM, tmp_path)
    assert (found.outputs[0].shape, found.has_inferred_shapes, found.faults) == (
        (-1, -1),
        False,
        (),
    )
    assert found.not_checked == (
        "output shapes not checked: they depend on the operator com.microsoft:Gelu",
    )


def test_unknown_output_shape_leaves_batching_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output without a shape may have a batch dimension, which only inference shows."""
    outputs = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)]
    content = model("", [node("Relu", ["X"], ["Y"])], [tensor("X")], outputs)
    assert _described(content, tmp_path).has_batch_dimension is True
    monkeypatch.setattr(onnx_shapes, "_is_onnx_installed", lambda: False)
    assert _described(content, tmp_path).has_batch_dimension is None


def _skeleton(content: bytes, folder: Path) -> bytes:
    path = folder / "model.onnx"
    path.write_bytes(content)
    with path.open("rb") as file:
        return onnx_shapes._skeleton(MessageFile(file).root())


def test_weights_are_not_read(tmp_path: Path) -> None:
    """The copy of the model for inference does not contain large weights."""
    skeleton = _skeleton(relu(weights=1 << 20), tmp_path)
    assert len(skeleton) < 1000
    assert onnx.load_model_from_string(skeleton).graph.initializer[0].dims == [1 << 20]


def test_weights_within_a_list_of_graphs_are_not_read(tmp_path: Path) -> None:
    """An attribute can have a list of graphs, each with weights of its own."""
    weights = TensorProto(
        name="W", data_type=TensorProto.FLOAT, dims=[1 << 14], raw_data=bytes(1 << 16)
    )
    graph = helper.make_graph([], "branch", [], [], [weights])
    several = helper.make_node("Several", ["X"], ["Y"], branches=[graph, graph])
    assert len(_skeleton(model("", [several], [tensor("X")], [tensor("Y")]), tmp_path)) < 1000


def _field(number: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content


def test_deeply_nested_graph_is_not_copied(tmp_path: Path) -> None:
    """A graph within graphs, more than 100 messages deep, is refused before Python's stack ends."""
    node, attribute, graph, model_graph, doc_string = 1, 5, 6, 7, 10
    content = _field(doc_string, bytes(2000))
    for _ in range(40):
        content = _field(node, _field(attribute, _field(graph, content)))
    with pytest.raises(OverBudgetError, match="nested more than 100 deep"):
        _skeleton(_field(model_graph, content), tmp_path)


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ModelProto does not have a graph: it is an empty file"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "is a Git LFS pointer, not the file itself",
        ),
        (b"<!DOCTYPE html><html>", "Protobuf parsing failed: it is a web page"),
        (b"\x1f\x8b\x08\0", "Protobuf parsing failed: it is a compressed file"),
        (b"PK\x03\x04", "Protobuf parsing failed: it is a zip archive, as PyTorch and Keras write"),
        (b"\0" * 100, "Protobuf parsing failed: it is a file of zeros"),
        (relu()[:-3], "Protobuf parsing failed: a field is longer than what contains it"),
        (relu() + b"\0", "Protobuf parsing failed: no field has the number 0"),
    ],
)
def test_file_that_is_not_a_model(content: bytes, message: str, tmp_path: Path) -> None:
    """What is in place of a model is named."""
    assert _fault(content, tmp_path) == ("onnx-not-a-model", message)


@pytest.mark.parametrize(("image_version", "limit"), [("24.10", 21), ("25.04", 22), ("26.05", 25)])
def test_operator_set_of_the_image(image_version: str, limit: int, tmp_path: Path) -> None:
    """Each image has the newest operator set of its ONNX Runtime;
    an unknown image is the newest.
    """
    assert _described(relu(opset=limit), tmp_path, image_version).faults == ()
    code, message = _fault(relu(opset=limit + 1), tmp_path, image_version)
    assert (code, f"supports up to {limit}" in message) == ("onnx-version", True)
    assert _described(relu(opset=26), tmp_path).faults == ()


#: Takes Z from the graph around it.
_BRANCH = helper.make_graph([node("Relu", ["Z"], ["V"])], "branch", [], [tensor("V")])


def _graph(*nodes: onnx.NodeProto, outputs: str = "Y") -> ModelBytes:
    return model("", nodes, [tensor("X")], [tensor(outputs)])


def _external_weights(**entries: str) -> TensorProto:
    weights = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[4])
    weights.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weights.external_data.add(key=key, value=value)
    return weights


def _plus(*weights: TensorProto) -> ModelBytes:
    """Y = X + W."""
    nodes = [node("Add", ["X", "W"], ["Y"])]
    return model("", nodes, [tensor("X")], [tensor("Y")], initializers=weights)


def _constant(**fields: Any) -> ModelBytes:
    """Y = X + W, with a constant of four numbers."""
    usual = {"data_type": TensorProto.FLOAT, "dims": [4], "raw_data": bytes(16)}
    return _plus(TensorProto(name="W", **{**usual, **fields}))


def _calls_function(imports: Mapping[str, int], function_imports: Mapping[str, int]) -> bytes:
    """Y = mine:Twice(X), a function of the model."""
    content = model(
        "", [node("Twice", ["X"], ["Y"], "mine")], [tensor("X")], [tensor("Y")], opsets=imports
    )
    proto = onnx.load_model_from_string(content)
    opsets = [helper.make_opsetid(*each) for each in function_imports.items()]
    body = [node("Add", ["a", "a"], ["b"])]
    proto.functions.append(helper.make_function("mine", "Twice", ["a"], ["b"], body, opsets))
    return bytes(proto.SerializeToString())


_NAMES = [helper.make_node("Relu", [given], [found], name="n") for given, found in ("XZ", "ZY")]
_INT8 = [tensor(name, TensorProto.INT8) for name in "XY"]
_TWO_INPUTS = model("", [node("Relu", ["X"], ["Y"])], [tensor("X")] * 2, [tensor("Y")])
_NO_Z = 'reads "Z", which is not produced by any operator'
_NO_AI_ONNX = "No opset import for domain ai.onnx in a function of the model"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            _graph(node("Relu", ["X"], ["Y"]), node("Abs", ["X"], ["Y"])),
            'Duplicate definition of "Y"',
        ),
        (_graph(node("Relu", ["Z"], ["Y"])), f"the operator Relu {_NO_Z}"),
        (_graph(node("Relu", ["X"], ["Z"])), 'the output "Y" is not produced by any operator'),
        (
            _graph(helper.make_node("If", ["X"], ["Y"], then_branch=_BRANCH)),
            f"the operator If {_NO_Z}",
        ),
        (
            _graph(node("Add", ["X", "Z"], ["Y"]), node("Relu", ["Y"], ["Z"])),
            "the graph is not acyclic",
        ),
        (_TWO_INPUTS, 'Duplicate definition of "X"'),
        (_graph(*_NAMES), "two nodes with same node name (n)"),
        (_constant(data_type=0), 'the initializer "W" has no valid data type'),
        (_constant(dims=[-4]), 'the initializer "W" has a negative dim'),
        (
            _constant(raw_data=bytes(12)),
            'the initializer "W" has 12 bytes, but its type and dims need 16',
        ),
        (_constant(dims=[5], raw_data=bytes(20)), "Incompatible dimensions"),
        (_graph(helper.make_node("Softmax", ["X"], ["Y"], axis=5)), "'axis' must be in [-2 , 1]"),
        (_calls_function({"": 13}, {"": 13}), "No opset import for domain mine"),
        (_calls_function({"": 13, "mine": 1}, {}), _NO_AI_ONNX),
        (model("", [node("MatMul", ["X", "X"], ["Y"])], _INT8[:1], _INT8[1:]), "int8"),
    ],
)
def test_invalid_graph(content: bytes, message: str, tmp_path: Path) -> None:
    """Names that are defined twice or not at all, cycles,
    and types that an operator does not accept.
    """
    code, found = _fault(content, tmp_path)
    assert code == "onnx-invalid-graph"
    assert message in found


@pytest.mark.parametrize(
    ("values", "is_fault"), [(3, False), (2, True), (5_000, False), (5_001, False)]
)
def test_values_of_an_initializer_are_counted(values: int, is_fault: bool, tmp_path: Path) -> None:
    """An initializer has as many values as its dims need; those of a long list are not counted."""
    dims = 3 if values <= 3 else 5_000
    weights = TensorProto(
        name="W", data_type=TensorProto.INT64, dims=[dims], int64_data=[1] * values
    )
    content = model(
        "",
        [node("Relu", ["X"], ["Y"]), node("Identity", ["W"], ["Z"])],
        [tensor("X")],
        [tensor("Y"), tensor("Z", TensorProto.INT64, (dims,))],
        initializers=[weights],
    )
    reasons = [fault.message for fault in _described(content, tmp_path).faults]
    assert ["has 2 elements, but its dims need 3" in reason for reason in reasons] == [
        True
    ] * is_fault


def test_function_of_the_model_is_a_known_operator(tmp_path: Path) -> None:
    """An operator may be defined by the model itself,
    or by a library that the configuration names.
    """
    imports = {"": 13, "mine": 1}
    path = tmp_path / "model.onnx"
    path.write_bytes(
        model(
            "", [node("Twice", ["X"], ["Y"], "mine")], [tensor("X")], [tensor("Y")], opsets=imports
        )
    )
    assert [fault.code for fault in describe(path).faults] == ["onnx-operator"]
    assert describe(path, has_op_library=True).faults == ()
    assert _described(_calls_function(imports, {"": 13}), tmp_path).faults == ()


@pytest.mark.parametrize(
    "imports", [{"": 27}, {"com.microsoft": 2}, {"ai.onnx.preview.training": 2}]
)
def test_operator_sets_of_functions_and_other_domains(
    imports: dict[str, int], tmp_path: Path
) -> None:
    """A function's operator sets have the limits of the model's;
    other domains have one operator set.
    """
    content = _calls_function({"": 13, "mine": 1}, {"": 13, **imports})
    assert "is too new" in _fault(content, tmp_path)[1]


def test_what_the_runtime_accepts_although_the_file_is_not_exact(tmp_path: Path) -> None:
    """The domain has its long name, an output has no type,
    or a Constant another type or a name twice.
    """
    opsets = {"ai.onnx": 13}
    named = model(
        "", [node("Relu", ["X"], ["Y"], "ai.onnx")], [tensor("X")], [tensor("Y")], opsets=opsets
    )
    assert _described(named, tmp_path).faults == ()
    untyped = model(
        "", [node("Relu", ["X"], ["Y"])], [tensor("X")], [onnx.ValueInfoProto(name="Y")]
    )
    (output,) = _described(untyped, tmp_path).outputs
    assert (output.data_type, output.shape) == ("TYPE_FP32", (-1, 4))
    value = helper.make_tensor("v", TensorProto.INT64, [1], [1])
    constant = helper.make_node("Constant", [], ["Z"], name="twice", value=value)
    outputs = [tensor("Y"), helper.make_tensor_value_info("Z", TensorProto.FLOAT, [1])]
    relu_node = helper.make_node("Relu", ["X"], ["Y"], name="twice")
    content = model("", [relu_node, constant], [tensor("X")], outputs)
    assert _described(content, tmp_path).faults == ()


_SHORT = 'ends at byte 24 of "short.bin", which has only 20 bytes'
_WHOLE = "/opt/ml/model/m/1/whole.bin"


@pytest.mark.parametrize(
    ("location", "image_version", "reason"),
    [
        ("", "24.10", "names no file"),
        ("absent.bin", "24.10", 'is in "absent.bin", which does not exist'),
        ("short.bin", "24.10", _SHORT),
        ("../outside.bin", "26.05", 'is in "../outside.bin", outside the folder of the model'),
        ("../outside.bin", "24.10", None),
        ("whole.bin", "26.05", None),
        ("../1/whole.bin", "26.05", None),
        ("whole.bin/", "24.10", 'is in "whole.bin/", which does not exist'),
        (_WHOLE, "24.10", None),
        ("/opt/ml/model/m/1/short.bin", "24.10", _SHORT),
        (_WHOLE, "26.05", f'is in "{_WHOLE}", outside the folder of the model'),
    ],
)
def test_external_data(
    location: str, image_version: str, reason: str | None, tmp_path: Path
) -> None:
    """The data file exists, is long enough and, in newer images, is beside the model."""
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    for name, size in {"short.bin": 20, "whole.bin": 24, "../outside.bin": 24}.items():
        (folder / name).write_bytes(bytes(size))
    content = _plus(_external_weights(location=location, offset="8", length="16"))
    faults = _described(content, folder, image_version).faults
    assert [fault.message for fault in faults] == (
        [f'the external data of "W" {reason}'] if reason else []
    )


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"length": "16"}, None),
        ({"offset": " +0"}, None),
        ({}, None),
        ({"length": "x"}, "has the length -1"),
        ({"offset": "1"}, "ends at byte 17"),
        ({"offset": "x"}, "has an offset that is not a number of bytes"),
        ({"offset": "-4"}, "has an offset that is not a number of bytes"),
        ({"length": "12"}, "has the length 12, but its type and dims need 16 bytes"),
    ],
)
def test_range_of_external_data(
    entries: dict[str, str], reason: str | None, tmp_path: Path
) -> None:
    """The range has the size of the tensor and is in the file;
    without a length it is as long as needed.
    """
    (tmp_path / "data.bin").write_bytes(b"\0" * 16)
    content = _plus(_external_weights(location="data.bin", **entries))
    found = [fault.message for fault in _described(content, tmp_path).faults]
    assert [reason in each for each in found] == [True] if reason else found == []


def test_external_data_of_a_constant(tmp_path: Path) -> None:
    """The value of a Constant node may be in a file of its own, which must exist."""
    constant = helper.make_node(
        "Constant", [], ["W"], value=_external_weights(location="absent.bin")
    )
    content = model("", [constant, node("Add", ["X", "W"], ["Y"])], [tensor("X")], [tensor("Y")])
    assert '"absent.bin", which does not exist' in _fault(content, tmp_path)[1]


# --- the file -------------------------------------------------------------------------------------


def test_missing_file_names_the_file_that_is_there(tmp_path: Path) -> None:
    """The hint says to rename another .onnx file, or where to copy the model."""
    (fault,) = describe(tmp_path / "model.onnx").faults
    assert fault.hint == f'copy the model to "{tmp_path.name}/model.onnx"'
    (tmp_path / "resnet.onnx").write_bytes(relu())
    (fault,) = describe(tmp_path / "model.onnx").faults
    assert (
        fault.hint
        == 'rename "resnet.onnx" to "model.onnx", or set default_model_filename: "resnet.onnx"'
    )
    (fault,) = describe(tmp_path / "1" / "model.onnx").faults
    assert fault.hint == 'copy the model to "1/model.onnx"'


def test_folder_in_place_of_the_file(tmp_path: Path) -> None:
    """A folder contains model.onnx."""
    folder = tmp_path / "model.onnx"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(relu())
    assert describe(folder).inputs[0].name == "X"


def test_link_to_nothing_and_named_pipe_are_missing_files(tmp_path: Path) -> None:
    """Neither waits nor raises."""
    (tmp_path / "link.onnx").symlink_to("absent")
    os.mkfifo(tmp_path / "pipe.onnx")
    (link,) = describe(tmp_path / "link.onnx").faults
    assert link.message.endswith("is a link to a file that does not exist")
    (pipe,) = describe(tmp_path / "pipe.onnx").faults
    assert pipe.code == "model-file-missing"


def test_ort_format(tmp_path: Path) -> None:
    """A file with the suffix .ort must be in ONNX Runtime's own format."""
    path = tmp_path / "model.ort"
    path.write_bytes(b"\0\0\0\0ORTM")
    assert (describe(path).format, describe(path).faults) == ("ort", ())
    path.write_bytes(relu())
    assert describe(path).faults[0].message == "ORT model verification failed"


@settings(deadline=None)
@given(position=st.integers(0, len(FLATTENED) - 1), replacement=st.binary(min_size=1, max_size=4))
def test_damaged_models_are_described(
    position: int, replacement: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever bytes of a model are changed, describing it raises no error."""
    content = bytearray(FLATTENED)
    content[position : position + len(replacement)] = replacement
    found = _described(bytes(content), tmp_path_factory.getbasetemp())
    assert found.format == "onnx"
