"""Configurations that are derived from model files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_examples.onnx_models import model, node, relu, tensor, with_default
from onnx import TensorProto, helper, numpy_helper

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.builder.derived_config import DerivedConfig, derive
from triton_model_check.cli.model.arguments import SYNTAX
from triton_model_check.model.completion import complete_from_onnx
from triton_model_check.model_config import (
    FilBackend,
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
)
from triton_model_check.model_files import describe, onnx_shapes

Write = Callable[..., Path]
TORCH_ARCHIVES = Path(__file__).parents[1] / "model_files" / "torch_archives"


def _derive(path: Path, **options: Any) -> DerivedConfig:
    return derive(ModelConfig.draft, path, **options)


def _config(derived: DerivedConfig) -> ModelConfig:
    return ModelConfig.from_message(derived.message)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a model file and return its path."""

    def write_file(content: bytes, name: str = "net.onnx") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write_file


def several_inputs() -> bytes:
    """S = A + B, and C as INT64 with a second dimension of variable size."""
    return model(
        "",
        [node("Add", ["A", "B"], ["S"]), node("Identity", ["C"], ["T"])],
        [tensor("A"), tensor("B"), tensor("C", TensorProto.INT64, ("batch", "length"))],
        [tensor("S"), tensor("T", TensorProto.INT64, ("batch", "length"))],
    )


def strings() -> bytes:
    tensors = ([tensor(name, TensorProto.STRING, ("n", 1))] for name in "XY")
    return model("", [node("Identity", ["X"], ["Y"])], *tensors)


def without_output_shape() -> bytes:
    output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)
    return model("", [node("Relu", ["X"], ["Y"])], [tensor("X")], [output])


MODELS: dict[str, tuple[bytes, int]] = {
    "fixed batch": (relu((1, 3, 8, 8)), 0),
    "dynamic batch": (relu(("n", 3, 8, 8)), 4),
    "no batch": (relu((3, "height", "width")), 0),
    "several inputs": (several_inputs(), 4),
    "strings": (strings(), 4),
    "scalar": (relu(()), 0),
    "only a batch": (relu(("n",)), 4),
    "default value": (with_default(), 4),
}


@pytest.mark.parametrize(("content", "max_batch_size"), MODELS.values(), ids=MODELS)
def test_config_is_what_the_backend_completes(
    content: bytes, max_batch_size: int, write: Write
) -> None:
    """Triton completes the written configuration to the same as an empty one."""
    path = write(content)
    config = ModelConfig.from_model_file(path)
    assert (config.name, config.max_batch_size) == ("net", max_batch_size)
    empty = ModelConfig(name="net", platform="onnxruntime_onnx").to_message()
    file = describe(path)
    completed = complete_from_onnx(config.to_message(), file, "net")
    assert completed == complete_from_onnx(empty, file, "net")


def test_text_has_the_reasons(write: Write) -> None:
    """The comments are before their fields, and the text parses to the configuration."""
    derived = _derive(write(relu((1, 4))))
    text = derived.to_text()
    assert ModelConfig.from_text(text) == _config(derived)
    lines = text.splitlines()
    assert lines[lines.index("max_batch_size: 0") - 2].startswith(
        "# max_batch_size is 0: Triton batches only"
    )
    assert 'unlike "X" and "Y"' in text
    assert text.endswith(
        "# instance_group is left out, so Triton runs one "
        "instance on each GPU, or two on the CPU.\n"
    )
    assert max(map(len, lines)) <= 100


def test_first_dimension_need_not_be_the_batch(write: Write) -> None:
    """With max_batch_size 0, dims contain all dimensions of a model that could batch."""
    config = ModelConfig.from_model_file(write(relu(("time", 16))), max_batch_size=0)
    assert (config.max_batch_size, config.dynamic_batching) == (0, None)
    assert (config.input[0].dims, config.output[0].dims) == ((-1, 16), (-1, 16))


def test_options_of_the_user_are_kept(write: Write) -> None:
    """Each given field replaces the derived one; a tensor keeps what is not given."""
    batching = ModelDynamicBatching(max_queue_delay_microseconds=5000, preferred_batch_size=[8])
    config = ModelConfig.from_model_file(
        write(relu(("n", "height", "width"))),
        name="resnet",
        max_batch_size=16,
        dynamic_batching=batching,
        instance_group=[ModelInstanceGroup(count=2, kind="KIND_CPU")],
        input=[ModelInput(name="X", dims=[224, 224])],
    )
    assert config.dynamic_batching == batching
    assert config.input == (ModelInput(name="X", data_type="TYPE_FP32", dims=[224, 224]),)
    assert (config.name, config.max_batch_size, config.instance_group[0].count) == ("resnet", 16, 2)


def test_input_with_a_default_may_be_added(write: Write) -> None:
    """Optional inputs are left out, unless they are given."""
    path = write(with_default((1, 4)))
    assert [each.name for each in ModelConfig.from_model_file(path).input] == ["X"]
    given = ModelInput(name="K", data_type="TYPE_FP32", dims=[1, 4], optional=True)
    assert [each.name for each in ModelConfig.from_model_file(path, input=[given]).input] == [
        "X",
        "K",
    ]


def test_outputs_of_unknown_shape_are_left_to_triton(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without shape inference, a declared shape may differ from that of ONNX Runtime."""
    monkeypatch.setattr(onnx_shapes, "_is_onnx_installed", lambda: False)
    derived = _derive(write(relu()))
    config = _config(derived)
    assert (len(config.input), config.output, config.max_batch_size) == (1, (), 4)
    assert "# output is left out, so that Triton completes it." in derived.to_text()
    unknown = _derive(write(without_output_shape()))
    assert (_config(unknown).input, _config(unknown).max_batch_size) == ((), 0)
    assert _config(_derive(write(relu()), max_batch_size=0)).output[0].dims == (-1, 4)


def _computed(sliced: str) -> bytes:
    """Return a product of X and W, of which one has a computed number of columns or rows."""
    values = {"Z": [0], "S": [-2], "A": [int(sliced == "W")]}
    constants = [numpy_helper.from_array(np.array(each), name) for name, each in values.items()]
    constants.append(numpy_helper.from_array(np.ones((4, 4), np.float32), "W"))
    factors = {"X": "X", "W": "W", sliced: "part"}
    nodes = [
        node("Sub", ["Z", "S"], ["end"]),
        node("Slice", [sliced, "Z", "end", "A"], ["part"]),
        node("MatMul", list(factors.values()), ["Y"]),
    ]
    output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)
    return model("", nodes, [tensor("X")], [output], initializers=constants)


def test_outputs_that_are_not_certain_are_left_to_triton(write: Write) -> None:
    """An output is left out if ONNX Runtime may compute its dims, unlike the batch of an input."""
    config = _config(_derive(write(_computed("W"))))
    assert (len(config.input), config.output, config.max_batch_size) == (1, (), 4)
    config = _config(_derive(write(_computed("X"))))
    assert (config.input, config.output, config.max_batch_size) == ((), (), 0)


def test_output_that_is_not_certain_is_required_for_no_batches(write: Write) -> None:
    """With max_batch_size 0, Triton would batch if outputs were left out, so they are required."""
    path = write(_computed("W"))
    with pytest.raises(InvalidValueError, match=r'the shape of "Y" with certainty; set output='):
        _derive(path, max_batch_size=0)
    with pytest.raises(InvalidValueError, match="set --onnx-runtime fetch to ask ONNX Runtime"):
        _derive(path, max_batch_size=0, syntax=SYNTAX)
    output = [ModelOutput(name="Y", data_type="TYPE_FP32", dims=[-1, 2])]
    config = _config(_derive(path, max_batch_size=0, fields={"output": output}))
    assert (config.max_batch_size, config.output[0].dims) == (0, (-1, 2))


def test_warmup_has_zeros_for_every_input(write: Write) -> None:
    """One request of batch size 1 and one of the largest batch; variable sizes are 1 or given."""
    path = write(several_inputs())
    warmup = ModelConfig.from_model_file(path, with_warmup=True).model_warmup
    assert [each.batch_size for each in warmup] == [1, 4]
    dims = {name: tuple(each.dims) for name, each in warmup[0].inputs.items()}
    assert dims == {"A": (4,), "B": (4,), "C": (1,)}
    assert all(each.zero_data for request in warmup for each in request.inputs.values())
    longer = _config(_derive(path, with_warmup=True, warmup_dims={"C": [7]}))
    assert longer.model_warmup[1].inputs["C"].dims == (7,)


LFS = b"version https://git-lfs.github.com/spec/v1\n"
TREES_INPUT = (
    'set input=[ModelInput(name="input__0", data_type="TYPE_FP32", '
    "dims=[28])] and backend=FilBackend("
)
FIXED_BATCH = 'got max_batch_size 8, but the first dimension of "X" and "Y" is fixed'
LFS_HINT = "is a Git LFS pointer, not the file itself; run `git lfs install` and `git lfs pull`"
NO_BATCHES = "net.onnx: dynamic_batching has no effect, because max_batch_size is 0"
NO_INPUT = 'net.onnx: the model has no input of that name, got "x"; did you mean "X"?'
NO_WARMUP = "net.plan: with_warmup needs the inputs, which the file does not say; set input=["


@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        (
            relu((1, 4)),
            "net.onnx",
            {"max_batch_size": 8},
            f"does not support batching, {FIXED_BATCH}",
        ),
        (relu(), "net.onnx", {"input": [ModelInput(name="x", dims=[4])]}, NO_INPUT),
        (relu(), "net.onnx", {"max_batchsize": 8}, 'did you mean "max_batch_size"?'),
        (LFS, "net.onnx", {}, f"net.onnx: {LFS_HINT}"),
        (b"", "net.h5", {}, 'net.h5: the format of the model is unknown, got ".h5"'),
        (relu((1, 4)), "net.onnx", {"dynamic_batching": ModelDynamicBatching()}, NO_BATCHES),
        (b'{"learner": {}}', "net.json", {}, TREES_INPUT),
        (b"ftrt" + bytes(24), "net.plan", {"with_warmup": True}, NO_WARMUP),
    ],
)
def test_errors_name_the_file_and_the_fix(
    content: bytes, name: str, options: dict[str, Any], message: str, write: Write
) -> None:
    """What is wrong with the file or missing is an error with the file's name."""
    with pytest.raises(InvalidValueError) as error:
        ModelConfig.from_model_file(write(content, name), **options)
    assert message in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    """A path that does not exist is an error."""
    with pytest.raises(
        InvalidValueError, match=r"net.onnx: does not exist; pass the path of a model file"
    ):
        ModelConfig.from_model_file(tmp_path / "net.onnx")


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"x": [1]}, 'shape of "x": the model has no input'),
        ({"X": [5]}, r"must fit the dims \[4\], got \[5\]"),
    ],
)
def test_wrong_warmup_dims(dims: dict[str, list[int]], message: str, write: Write) -> None:
    """Dims of the warmup request must fit an input."""
    with pytest.raises(InvalidValueError, match=message):
        _derive(write(relu()), with_warmup=True, warmup_dims=dims)


# --- other formats --------------------------------------------------------------------------------


def test_torchscript_needs_tensors() -> None:
    """The error names the missing fields and the arguments of forward."""
    path = TORCH_ARCHIVES / "traced.pt"
    with pytest.raises(InvalidValueError, match=r'\(forward takes "x"\); set input=.*and output='):
        ModelConfig.from_model_file(path)
    tensors: dict[str, Any] = {
        "input": [ModelInput(data_type="TYPE_INT64", dims=[8])],
        "output": [ModelOutput(data_type="TYPE_FP32", dims=[2])],
    }
    config = ModelConfig.from_model_file(path, **tensors)
    assert (config.platform, config.max_batch_size) == ("pytorch_libtorch", 0)
    assert [each.name for each in config.input] == ["INPUT__0"]


def test_trees(write: Write) -> None:
    """The ending decides the type; the FIL backend batches,
    and gets the threshold that it requires.
    """
    inputs = [ModelInput(data_type="TYPE_FP32", dims=[28])]
    fields = {"backend": FilBackend(output_class=True), "input": inputs}
    derived = _derive(write(b'{"learner": {}}', "fraud.json"), fields=fields)
    config = _config(derived)
    assert config.parameters == {
        "model_type": "xgboost_json",
        "output_class": "true",
        "threshold": "0.5",
    }
    assert (config.input[0].name, config.output[0].name) == ("input__0", "output__0")
    assert config.max_batch_size == 8192
    assert list(derived.files) == ["xgboost.json"]


_UBJSON_MODEL = (
    b"{L" + bytes(7) + b"\x07learner{"
    b"L"
    + bytes(7)
    + b"\x13learner_model_param{L"
    + bytes(7)
    + b"\x0bnum_featureSL"
    + bytes(7)
    + b"\x0230}"
    b"L"
    + bytes(7)
    + b"\x09objective{L"
    + bytes(7)
    + b"\x04nameSL"
    + bytes(7)
    + b"\x10reg:squarederror}}}"
)
TREES = {
    "LightGBM": (
        "net.txt",
        b"tree\nversion=v4\nmax_feature_idx=29\nobjective=binary sigmoid:1\n\n",
        "true",
    ),
    "LightGBM ranking": ("net.txt", b"tree\nmax_feature_idx=29\nobjective=lambdarank\n\n", "false"),
    "XGBoost": (
        "net.json",
        b'{"learner":{"gradient_booster":{"trees":[{"tree_param":{"num_feature":"3"}}]},"learner_model_param":'
        b'{"num_feature":"30","num_target":"1"},"objective":{"name":"multi:softprob"}}}',
        "true",
    ),
    "XGBoost UBJSON": ("net.ubj", _UBJSON_MODEL, "false"),
}


@pytest.mark.parametrize(("name", "content", "output_class"), TREES.values(), ids=TREES)
def test_trees_say_their_features_and_objective(
    write: Write, name: str, content: bytes, output_class: str
) -> None:
    """The number of features and the objective come from the file, so nothing has to be added."""
    path = write(content, name)
    assert describe(path).not_checked == ("trees not checked",)
    config = ModelConfig.from_model_file(path)
    assert [(each.name, each.data_type, each.dims) for each in config.input] == [
        ("input__0", "TYPE_FP32", (30,))
    ]
    assert config.parameters["output_class"] == output_class


@pytest.mark.parametrize(
    ("size", "dims", "fix"),
    [(None, [28], "dims=[30])]"), (0, [-1, 28], "dims=[-1,30])]"), (0, [30], "dims=[-1,30])]")],
)
def test_input_with_other_features_is_refused(
    write: Write, size: int | None, dims: list[int], fix: str
) -> None:
    """The FIL backend would read values of another row. A variable size may be right."""
    path = write(*TREES["LightGBM"][1::-1])
    given = {"input": [ModelInput(name="input__0", data_type="TYPE_FP32", dims=dims)]}
    with pytest.raises(
        InvalidValueError, match=r"net\.txt: the model has 30 features, but"
    ) as wrong:
        _derive(path, max_batch_size=size, fields=given)
    assert f"{fix}, or leave the option out" in str(wrong.value)
    variable = {"input": [ModelInput(name="input__0", data_type="TYPE_FP32", dims=[-1, -1])]}
    assert _config(_derive(path, max_batch_size=0, fields=variable)).input[0].dims == (-1, -1)


def test_trees_without_batching_take_rows(write: Write) -> None:
    """With max_batch_size 0, dims contain the number of rows."""
    config = ModelConfig.from_model_file(write(*TREES["LightGBM"][1::-1]), max_batch_size=0)
    assert (config.input[0].dims, config.output[0].dims) == ((-1, 30), (-1, 1))


def test_backends_that_complete_the_rest(write: Write) -> None:
    """A plan and an OpenVINO model are completed by their backends when they are loaded."""
    plan = _derive(write(b"ftrt" + bytes(24), "net.engine"), max_batch_size=8)
    assert (_config(plan).platform, _config(plan).max_batch_size) == ("tensorrt_plan", 8)
    assert list(plan.files) == ["model.plan"]
    write(b"weights", "net.bin")
    openvino = _derive(write(b'<net name="n"></net>', "net.xml"))
    assert (_config(openvino).backend, list(openvino.files)) == (
        "openvino",
        ["model.xml", "model.bin"],
    )
    assert "completes this from the model" in openvino.to_text()


def test_names_that_are_kept(write: Write, tmp_path: Path) -> None:
    """ONNX Runtime reads its own format only from an .ort file, and a folder gives the name."""
    derived = _derive(write(b"\x08\0\0\0ORTM", "net.ort"))
    assert (list(derived.files), _config(derived).default_model_filename) == (
        ["model.ort"],
        "model.ort",
    )
    (tmp_path / "resnet").mkdir()
    (tmp_path / "resnet" / "model.onnx").write_bytes(relu())
    assert ModelConfig.from_model_file(tmp_path / "resnet").name == "resnet"


def test_model_is_derived_for_the_newest_image_whose_content_is_known(write: Write) -> None:
    """ONNX Runtime is that of an image whose version of it is known, as for ``check``."""
    derived = _derive(write(several_inputs()), onnx_runtime="auto")
    assert not [each for each in derived.file.not_checked if "is not known" in each]


def with_external_data(path: Path, location: str) -> Path:
    """An ONNX model with a weight in another file."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])]
    add = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([add], "g", inputs, outputs, [weight])
    opsets = [helper.make_opsetid("", 17)]
    found = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(found.SerializeToString())
    return path


def test_data_that_is_a_link_to_another_folder_is_refused(tmp_path: Path) -> None:
    """A foreign model must not choose a file of the user that is copied and uploaded with it."""
    secret = tmp_path / "home" / "credentials"
    secret.parent.mkdir()
    secret.write_bytes(bytes(16))
    path = with_external_data(tmp_path / "downloads" / "net.onnx", "weights")
    (path.parent / "weights").symlink_to(secret)
    derived = _derive(path)
    with pytest.raises(InvalidValueError, match=r"weights: is a link out of the folder"):
        _ = derived.files


def test_data_beside_a_linked_model_is_its_own(tmp_path: Path) -> None:
    """As in the cache of Hugging Face, model and data are links to one folder."""
    blob = with_external_data(tmp_path / "blobs" / "0123", "weights")
    (blob.parent / "4567").write_bytes(bytes(16))
    path = tmp_path / "snapshots" / "1" / "net.onnx"
    path.parent.mkdir(parents=True)
    path.symlink_to(blob)
    (path.parent / "weights").symlink_to(blob.parent / "4567")
    files = _derive(path).files
    assert files == {"model.onnx": path, "weights": path.parent / "weights"}
