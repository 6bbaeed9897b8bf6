"""``check`` and synth check a repository for the same image, and find the same errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_apps import CPU, add_endpoint, add_ensemble, add_many, make_stack
from check_examples import EXAMPLES, write
from check_examples.onnx_models import model, node, tensor
from onnx import TensorProto

from constructs_triton.cli import main
from constructs_triton_core.errors import ConstructsTritonError, RepositoryError
from triton_model_check.model_repository import ModelRepository

ASSETS = Path(__file__).parents[3] / "assets" / "model_repositories"
#: Examples of no endpoint in particular.
KEYS = [key for key, example in EXAMPLES.items() if example.target is None]
#: Packing writes the archive without what these report.
FIXED_BY_PACKING = {"layout-no-version: ensemble", "sagemaker-archive-link"}
#: The command takes its path for the one of a model, and checks the repository around it.
PATH_OF_A_MODEL = {"layout-folder-is-model"}
LEFT_OUT = FIXED_BY_PACKING | PATH_OF_A_MODEL
Errors = set[tuple[str, str]]


def _checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    main(["check", str(folder), "--instance-type", CPU.name, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def _errors_of_check(document: dict[str, Any]) -> Errors:
    return {
        (each["code"], each["path"]) for each in document["findings"] if each["severity"] == "error"
    }


def _at_synth(folder: Path, document: dict[str, Any]) -> Iterator[ConstructsTritonError]:
    """Yield the errors of the endpoints that ``check`` has assumed."""
    if document["target"] == "sagemaker-multi-model":
        names: list[str | None] = [None]
    else:
        names = [*document["default_models"]]
    for name in names:
        stack: cdk.Stack = make_stack()
        try:
            if name is None:
                add_many(stack, folder, instance_type=CPU)
            elif ModelRepository.from_directory(folder).model(name).is_ensemble:
                add_ensemble(stack, folder, ensemble=name, instance_type=CPU)
            else:
                add_endpoint(stack, folder, model=name, instance_type=CPU)
        except ConstructsTritonError as error:
            yield error


def _agree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = _checked(folder, capsys)
    if document["target"] is None:  # no endpoint has such a folder
        assert document["verdict"] == "rejected"
        return
    assert document["image_version"] == "26.05"
    raised = list(_at_synth(folder, document))
    found: Errors = set()
    for error in raised:
        if isinstance(error, RepositoryError):
            found |= {(each.code, each.path) for each in error.findings}
    # Synth stops at the errors that it finds before it looks at the image and the instance type.
    assert found <= _errors_of_check(document)
    assert bool(raised) is (document["verdict"] in ("rejected", "cannot-be-served"))


@pytest.mark.parametrize("key", sorted(set(KEYS) - LEFT_OUT))
def test_example_has_the_same_errors(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An example of a check is refused at synth with the errors that ``check`` prints."""
    _agree(write(EXAMPLES[key].failing, tmp_path / "models"), capsys)


@pytest.mark.parametrize("path", sorted(ASSETS.iterdir()), ids=lambda path: path.name)
def test_sample_models_have_the_same_errors(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``check`` and synth find the same errors in the sample models."""
    _agree(path, capsys)


def test_image_of_the_construct_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the default image cannot load is an error of ``check``, too: an operator set that its
    ONNX Runtime does not know, and a backend that it no longer has.
    """
    sides = [tensor("x", TensorProto.FLOAT, (1,))], [tensor("y", TensorProto.FLOAT, (1,))]
    relu = [node("Relu", ["x"], ["y"])]
    newer = model("", relu, *sides, opsets={"": 26})
    write({"m/1/model.onnx": newer, "m/config.pbtxt": 'backend: "onnxruntime"\n'}, tmp_path / "a")
    saved = {"m/1/model.savedmodel/saved_model.pb": b"\x08\x01"}
    config = {"m/config.pbtxt": 'platform: "tensorflow_savedmodel"\n'}
    write({**saved, **config}, tmp_path / "b")
    for folder, code in (("a", "onnx-version"), ("b", "target-backend-removed")):
        document = _checked(tmp_path / folder, capsys)
        assert code in {found for found, _ in _errors_of_check(document)}
        _agree(tmp_path / folder, capsys)
