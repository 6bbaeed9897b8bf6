"""Which file of a version a backend loads, and what is not refused because it depends on more."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples import write
from check_examples.torch_and_plan import plan, torchscript

from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

IO = (
    'input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
    'output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
)


def named(backend: str, file: str) -> str:
    return f'backend: "{backend}" default_model_filename: "{file}"\n{IO}'


def trees(parameter: str, model_type: str, file: str = "") -> str:
    return (
        'backend: "fil"\n'
        'input [ { name: "input__0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
        'output [ { name: "output__0" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
        f'parameters {{ key: "{parameter}" value {{ string_value: "false" }} }}\n'
        f'parameters {{ key: "model_type" value {{ string_value: "{model_type}" }} }}\n'
        f'default_model_filename: "{file}"\n'
    )


def _codes(
    folder: Path, config: str, files: dict[str, bytes], target: Target | None = None
) -> list[str]:
    write({"config.pbtxt": config, **files}, folder / "m")
    report = ModelRepository.from_directory(folder).check(target or Target(default_model="m"))
    return [finding.code for finding in report.errors]


FOR_EACH_GPU = f'backend: "tensorrt" cc_model_filenames {{ key: "7.5" value: "t4.plan" }}\n{IO}'
SAVED_MODEL = f'platform: "tensorflow_savedmodel" default_model_filename: "resnet"\n{IO}'
UBJSON = b"{L\0\0\0\0\0\0\0\x07learner"
NOT_REFUSED: dict[str, tuple[str, dict[str, bytes]]] = {
    "Python code of PyTorch": (
        f'backend: "pytorch" runtime: "model.py"\n{IO}',
        {"1/model.py": b"#"},
    ),
    "Python code by its name": (named("pytorch", "net.py"), {"1/net.py": b"#"}),
    "AOT Inductor": ('backend: "pytorch" platform: "torch_aoti"\n', {"1/model.pt2": b"PK"}),
    "AOT Inductor by its platform": ('platform: "torch_aoti"\n', {"1/model.pt2": b"PK"}),
    "a file for each GPU": (FOR_EACH_GPU, {"1/t4.plan": plan()}),
    "another name": (named("pytorch", "net.bin"), {"1/net.bin": torchscript("x: Tensor")}),
    "a path": (named("tensorrt", "t4/net.engine"), {"1/t4/net.engine": plan()}),
    "an unpicked version": (
        f'backend: "tensorrt"\n{IO}',
        {"1/readme.txt": b"", "2/model.plan": plan()},
    ),
    "ONNX for OpenVINO": (named("openvino", "model.onnx"), {"1/model.onnx": b"\x08"}),
    "OpenVINO without weights": (f'backend: "openvino"\n{IO}', {"1/model.xml": b"<net></net>"}),
    "another backend": (f'backend: "my_backend"\n{IO}', {"1/weights.bin": b""}),
    "DALI code": (f'backend: "dali"\n{IO}', {"1/dali.py": b"#"}),
    "trees of newer images": (
        trees("is_classifier", "xgboost_json"),
        {"1/xgboost.json": b'{"learner": 1}'},
    ),
    "trees in a folder": (
        trees("output_class", "lightgbm", "trees"),
        {"1/trees/model.txt": b"tree\n"},
    ),
    "trees of another name": (
        trees("output_class", "xgboost_ubj", "trees.bin"),
        {"1/trees.bin": UBJSON},
    ),
    "a SavedModel of another name": (SAVED_MODEL, {"1/resnet/saved_model.pb": b"\x08\x01"}),
    "a GraphDef": (f'platform: "tensorflow_graphdef"\n{IO}', {"1/model.graphdef": b"\x0a\x01"}),
}


@pytest.mark.parametrize("case", NOT_REFUSED)
def test_model_that_may_load_is_not_refused(case: str, tmp_path: Path) -> None:
    """Whatever file the configuration or the backend chooses,
    a model that may load has no error.
    """
    config, files = NOT_REFUSED[case]
    assert _codes(tmp_path, config, files) == []


@pytest.mark.parametrize(
    ("config", "file", "content", "code"),
    [
        (f'backend: "pytorch"\n{IO}', "net.pt", torchscript("x: Tensor"), "model-file-missing"),
        (f'backend: "tensorrt"\n{IO}', "model.plan", b"", "plan-not-a-plan"),
        (
            f'platform: "tensorflow_graphdef"\n{IO}',
            "model.graphdef",
            b"\x1f\x8b\x08",
            "model-file-format",
        ),
        (trees("output_class", "xgboost_json"), "xgboost.json", b"tree\n", "tree-model-type"),
    ],
)
def test_model_file_that_no_backend_loads(
    config: str, file: str, content: bytes, code: str, tmp_path: Path
) -> None:
    """A missing file or a file of another format is an error,
    and is not looked at with ``--no-files``.
    """
    assert _codes(tmp_path, config, {f"1/{file}": content}) == [code]
    without_files = Target(default_model="m", local_files=False)
    assert _codes(tmp_path, config, {}, without_files) == []


def test_old_images_do_not_load_other_plans(tmp_path: Path) -> None:
    """A plan is compared with the TensorRT of the image."""
    config = f'backend: "tensorrt"\n{IO}'
    old = Target(default_model="m", image_version="24.09", gpu_count=1)
    assert _codes(tmp_path, config, {"1/model.plan": plan("10.4.0.26")}, old) == []
    assert _codes(tmp_path, config, {"1/model.plan": plan("10.9.0.34")}, old) == ["plan-version"]
