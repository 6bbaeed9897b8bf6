"""Hints about mistakes of other people: each names the place, and no fix takes another's name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from check_examples import Files, write
from check_examples.model_files import XGBOOST
from check_examples.onnx_models import relu, time_first
from check_examples.repositories import CLASS, HEAD, IO, ONNX, TWO_OUTPUTS, ensemble, pipe, step
from check_examples.torch_and_plan import torchscript

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.spelling import did_you_mean, is_misspelling
from triton_model_check.builder.config import ModelConfig
from triton_model_check.model_config.target import Platform, Target
from triton_model_check.model_config.text import read_text_fault
from triton_model_check.model_files.unnamed_format import format_by_content
from triton_model_check.model_repository import ModelRepository

_UTILS = "import triton_python_backend_utils as pb_utils\n"


def _findings(files: Files, directory: Path, target: Target | None = None) -> dict[str, Finding]:
    """The findings of a repository by code, of several with one code the first."""
    return _checked(write(files, directory / "models"), target)


def _checked(models: Path, target: Target | None = None) -> dict[str, Finding]:
    """The same of a folder."""
    found = ModelRepository.from_directory(models).check(target, is_packed=False).findings
    return {finding.code: finding for finding in reversed(found)}


# --- keys of maps ---------------------------------------------------------------------------------


def test_key_that_a_map_has_twice_is_a_warning_with_both_lines(tmp_path: Path) -> None:
    """Every map of the schema is looked at, at any depth; the place is that of the earlier one."""
    warmup = 'inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } }'
    config = (
        HEAD
        + f'model_warmup [ {{ name: "w" batch_size: 1\n{warmup}\n'
        + warmup.replace("zero_data", "random_data")
        + "\n} ]\n"
    )
    found = _findings({"m/config.pbtxt": config, "m/1/model.py": CLASS}, tmp_path)
    twice = found["text-map-key-twice"]
    lines = config.splitlines()
    assert twice.line == lines.index(warmup) + 1
    assert twice.message == (
        f'inputs: key "X" is given twice; Triton uses the last value, on line {twice.line + 1}'
    )
    assert twice.fix is None


def test_same_key_in_two_maps_is_no_repetition(tmp_path: Path) -> None:
    """Two steps map the same key, and adjacent strings are one key."""
    two = pipe(step("a", "X", "T"), step("a", "T", "Y"))
    tags = 'metric_tags { key: "a" "b" value: "1" }\nmetric_tags { key: "a" "c" value: "1" }\n'
    assert "text-map-key-twice" not in _findings(ensemble(two + tags), tmp_path)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known", "is_one"),
    [
        ("resise", "resize", True),
        ("Bert-onnx", "bert_onnx", True),
        ("deteciton", "detection", True),
        ("yolov4", "yolov4_post", False),
        ("model_1", "model_2", False),
        ("encoder", "decoder", False),
        ("pre", "post", False),
    ],
)
def test_misspelling_is_no_other_name(name: str, known: str, is_one: bool) -> None:
    """A name with another number, word or prefix is a name of its own."""
    assert is_misspelling(name, known) is is_one
    assert (did_you_mean(name, [known], used=[known]) != "") is is_one


def test_absent_step_does_not_become_another_model(tmp_path: Path) -> None:
    """The hint is to add the folder, and no fix writes the name of a model with its own use."""
    steps = pipe(step("yolov4", "X", "T"), step("yolov4_post", "T", "Y"))
    files = {**ensemble(steps), "yolov4_post/config.pbtxt": HEAD, "yolov4_post/1/model.py": CLASS}
    found = _findings(files, tmp_path)["ensemble-unknown-model"]
    assert found.hint == "add its folder beside the folder of the ensemble"
    assert found.fix is None


def test_archive_of_a_step_is_unpacked(tmp_path: Path) -> None:
    """A folder that is there as an archive is no other model, and unpacking it is what the hint
    asks for.
    """
    files = ensemble(pipe(step("decoder", "X", "T"), step("detector", "T", "Y")), decoder=HEAD)
    found = _findings(files, tmp_path)["ensemble-unknown-model"]
    assert found.hint == "add its folder beside the folder of the ensemble"
    assert found.fix is None
    models = tmp_path / "models"
    shutil.copytree(models / "decoder", tmp_path / "detector")
    archive = shutil.make_archive(str(models / "detector"), "zip", tmp_path, "detector")
    assert "ensemble-unknown-model" in _checked(models)
    shutil.unpack_archive(archive, models)
    assert "ensemble-unknown-model" not in _checked(models)


def test_misspelled_step_that_is_used_elsewhere_is_a_question(tmp_path: Path) -> None:
    """The hint asks about the model that another step names, and nothing writes its name."""
    steps = pipe(step("resise", "X", "T"), step("resize", "T", "Y"))
    files = {**ensemble(steps), "resize/config.pbtxt": HEAD, "resize/1/model.py": CLASS}
    found = _findings(files, tmp_path)["ensemble-unknown-model"]
    assert (found.hint, found.fix) == ('did you mean "resize"?', None)


def test_absent_called_model_does_not_become_another_one(tmp_path: Path) -> None:
    """The name of a called model is not replaced by that of a model with another suffix."""
    call = (
        'pb_utils.InferenceRequest(model_name="bert", inputs=[], requested_output_names=[]).exec()'
    )
    code = _UTILS + CLASS.replace("...", call)
    files: Files = {
        "m/config.pbtxt": HEAD,
        "m/1/model.py": code,
        "bert_tokenizer/config.pbtxt": HEAD,
        "bert_tokenizer/1/model.py": CLASS,
    }
    found = _findings(files, tmp_path, Target())["python-called-model"]
    assert found.hint == "add its folder beside the folder of this model"
    assert found.fix is None


def test_tensor_does_not_get_the_name_of_its_neighbour(tmp_path: Path) -> None:
    """A tensor that ``model.py`` reads beside the declared one is not renamed to that one."""
    read = "\n        ".join(
        f'a{number} = pb_utils.get_input_tensor_by_name(requests[0], "{name}")'
        for number, name in enumerate(("image", "image_size"))
    )
    code = "import triton_python_backend_utils as pb_utils\n" + CLASS.replace(
        "...", f"\n        {read}"
    )
    config = HEAD.replace('"X"', '"image"')
    found = _findings({"m/config.pbtxt": config, "m/1/model.py": code}, tmp_path)
    wrong = found["python-tensor-name"]
    assert wrong.hint == 'use one of "image", or add it to config.pbtxt'
    assert wrong.fix is None


def test_tensor_that_a_step_reads_is_not_guessed_twice(tmp_path: Path) -> None:
    """A step reads a tensor that nothing writes; the one that has its readers is not suggested."""
    steps = pipe(step("a", "X", "image"), step("a", "image", "Y"), step("a", "image_size", "Z"))
    found = _findings(ensemble(steps), tmp_path)
    unproduced = found["ensemble-unproduced"]
    assert '"image_size"' in unproduced.message
    assert unproduced.hint == "map an output of a step to it"
    assert unproduced.fix is None


def test_unknown_field_beside_the_right_one_is_to_be_removed() -> None:
    """A misspelled field whose right name is set is not renamed, since a field is set once."""
    _, fault = read_text_fault("max_batch_size: 8\nmax_batchsize: 4\n")
    assert fault is not None
    assert fault.hint == 'remove it; "max_batch_size" is set already'


# --- files ----------------------------------------------------------------------------------------

_HELPER = "def resize(image):\n    return image\n"
_PIPELINE = "from nvidia.dali.plugin.triton import autoserialize\n\n\n@autoserialize\n"
_DALI = HEAD.replace("python", "dali")


@pytest.mark.parametrize(
    ("files", "code", "hint"),
    [
        (
            {"m/config.pbtxt": _DALI, "m/1/pipeline.py": _PIPELINE},
            "model-file-missing",
            'rename "pipeline.py" to "dali.py", or set default_model_filename: "pipeline.py"',
        ),
        (
            {"m/config.pbtxt": ONNX, "m/1/model.py": _HELPER},
            "model-file-missing",
            'copy the model to "1/model.onnx"',
        ),
        (
            {"m/config.pbtxt": ONNX, "m/1/model.py": CLASS},
            "model-file-missing",
            'copy the model to "1/model.onnx"; or, since "model.py" is a model of the backend '
            'python: write backend: "python" in place of backend: "onnxruntime"',
        ),
        (
            {"m/config.pbtxt": ONNX, "m/1/a.onnx": relu(), "m/1/b.onnx": relu()},
            "model-file-missing",
            'set default_model_filename to the name of the model, one of "a.onnx" and "b.onnx", '
            'or rename that one to "model.onnx"',
        ),
        (
            {"m/config.pbtxt": ONNX, "m/1": None, "m/resnet.onnx": relu()},
            "model-file-missing",
            'move "resnet.onnx" to "1/model.onnx"',
        ),
        (
            {"m/config.pbtxt": ONNX, "m/1/resnet/model.onnx": relu()},
            "model-file-missing",
            'move "1/resnet/model.onnx" to "1/model.onnx"',
        ),
        (
            {"m/config.pbtxt": HEAD, "m/1/model_utils.py": _HELPER},
            "python-model-file",
            "add 1/model.py",
        ),
        (
            {"m/config.pbtxt": HEAD, "m/1/scaler.py": CLASS},
            "python-model-file",
            'rename "scaler.py" to "model.py", or set default_model_filename: "scaler.py"',
        ),
        ({"m/model.onnx": relu()}, "layout-no-version", 'move "model.onnx" to "1/model.onnx"'),
        ({"m/latest/model.onnx": relu()}, "layout-no-version", 'rename the folder "latest" to 1'),
        (
            {"model.onnx": relu()},
            "layout-no-model",
            'move "model.onnx" to "my_model/1/model.onnx", where "my_model" is the name of the '
            "model; storageUri of the InferenceService names the folder above it",
        ),
    ],
)
def test_hint_names_the_file_and_its_place(
    files: Files, code: str, hint: str, tmp_path: Path
) -> None:
    """A model's file that has another name or place is named; a module in Python is no model."""
    platform: Platform = "kserve" if code == "layout-no-model" else "server"
    assert _findings(files, tmp_path, Target.named(platform))[code].hint == hint


def test_configuration_by_name_belongs_in_configs(tmp_path: Path) -> None:
    """A configuration of another name beside the model is not read, as the server shows.

    With ``--model-config-name`` the server reads it only in ``configs``.
    """
    files: Files = {"m/potato.pbtxt": HEAD, "m/1/model.py": CLASS}
    found = _findings(files, tmp_path)["backend-config-name"]
    assert found.path == "m/potato.pbtxt"
    assert found.hint == (
        "move it to configs/potato.pbtxt, which a server with --model-config-name=potato reads, "
        'or rename it to "config.pbtxt"'
    )
    others: Files = {
        "m/config.pbtxt": HEAD,
        "m/config_gpu.pbtxt": HEAD,
        "m/graph.pbtxt": "node { }",
        "m/1/model.py": CLASS,
    }
    assert _findings(others, tmp_path / "others") == {}


# --- batches --------------------------------------------------------------------------------------


def test_time_before_batch_is_not_batched(tmp_path: Path) -> None:
    """A derived configuration has no batches if the names say that an output begins with time.

    The user may still ask for batches, and the check then warns.
    """
    path = tmp_path / "turn.onnx"
    path.write_bytes(time_first())
    derived = ModelConfig.from_model_file(path)
    assert derived.max_batch_size == 0
    assert [list(output.dims) for output in derived.output] == [[-1, -1]]
    asked = ModelConfig.from_model_file(path, max_batch_size=4)
    assert asked.max_batch_size == 4
    files: Files = {"turn/config.pbtxt": asked.to_text(), "turn/1/model.onnx": time_first()}
    assert _findings(files, tmp_path)["onnx-batch-axis"].message == (
        '"Y" begins with "time", and "batch" is its dimension 1, but max_batch_size is 4: '
        "Triton takes the first dimension for the batch"
    )
    other = tmp_path / "relu.onnx"
    other.write_bytes(relu(("batch", "time", 4)))
    assert ModelConfig.from_model_file(other).max_batch_size > 0


# --- files without a name that says the format ----------------------------------------------------


def test_content_says_the_format_where_the_name_does_not(tmp_path: Path) -> None:
    """TorchScript with another ending, a SavedModel and trees get their backend and file."""
    script = tmp_path / "vad.jit"
    script.write_bytes(torchscript("x: Tensor"))
    assert format_by_content(script) == "torchscript"
    trees = tmp_path / "fraud.bst"
    trees.write_text(XGBOOST)
    assert format_by_content(trees) == "tree"
    saved = tmp_path / "basic"
    saved.mkdir()
    (saved / "saved_model.pb").write_bytes(b"\x08\x01")
    assert ModelConfig.from_model_file(saved).platform == "tensorflow_savedmodel"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("numbers.json", "[1, 2, 3]", "is not a model of XGBoost or LightGBM"),
        ("vocabulary.json", '{"a": 1}', "is not a model of XGBoost or LightGBM"),
        ("notes.txt", "a list", "is not a model of XGBoost or LightGBM"),
        ("weights.bin", "x", 'the format of the model is unknown, got ".bin"'),
        ("folder/resnet.onnx", "x", r"pass a model in it, such as .*folder/resnet\.onnx"),
        ("folder/notes.md", "x", "is a folder, and not a model itself; pass a model file"),
    ],
)
def test_other_content_is_no_model(name: str, content: str, message: str, tmp_path: Path) -> None:
    """A file of other content is refused, and a hint names no file that does not exist."""
    write({name: content}, tmp_path)
    with pytest.raises(InvalidValueError, match=message):
        ModelConfig.from_model_file(tmp_path / name.split("/", maxsplit=1)[0])


# --- outputs of a Python model --------------------------------------------------------------------

_RETURNS = """import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", each)]) for each in tensors]
"""


@pytest.mark.parametrize(
    ("old", "new", "is_absent"),
    [
        ("", "", True),
        ('pb_utils.Tensor("Y"', "pb_utils.Tensor(self.name", False),
        ("class TritonPythonModel:", "class TritonPythonModel(Base):", False),
        ("return [", 'more = pb_utils.Tensor.from_dlpack("Z", None)\n        return [', False),
        ("return [", "create = pb_utils.Tensor\n        return [", False),
        ("import triton", "import parts\nimport triton", False),
    ],
)
def test_output_that_no_code_creates(old: str, new: str, is_absent: bool, tmp_path: Path) -> None:
    """The response does not contain it, as the server shows; other code may create it unseen."""
    files: Files = {
        "m/config.pbtxt": HEAD.replace(IO, TWO_OUTPUTS),
        "m/1/model.py": _RETURNS.replace(old, new, 1),
        "m/1/parts.py": "",
    }
    found = _findings(files, tmp_path)
    assert ("python-output-absent" in found) is is_absent
    if is_absent:
        assert found["python-output-absent"].message == (
            '1/model.py creates no tensor "Z", so no response contains this output'
        )
