"""Describes formats of which only the beginning is checked: OpenVINO, trees, SavedModel, DALI.

Source of the rules: the openvino, fil, tensorflow and dali backends of Triton r24.10.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from constructs_triton.model_files.model_file import FaultCode, FileFault, ModelFile
from constructs_triton.model_files.wrong_content import recognize

__all__ = ["describe_dali", "describe_openvino", "describe_saved_model", "describe_tree"]

_HEAD_BYTES = 4096
_CONTENT = ("content not checked",)


def describe_openvino(path: Path, file: BinaryIO) -> ModelFile:
    """Describe an open ``model.xml``; its weights are in the ``.bin`` file of the same name."""
    if b"<net" not in file.read(_HEAD_BYTES):
        fault = _fault("openvino-not-a-model", file, "an OpenVINO model")
        return ModelFile(path, "openvino", faults=(fault,))
    weights = path.with_suffix(".bin")
    if weights.is_file():
        return ModelFile(path, "openvino", not_checked=_CONTENT)
    message = f'the weights "{weights.name}" do not exist'
    fault = FileFault("openvino-not-a-model", message, f'copy "{weights.name}" beside "{path.name}"')
    return ModelFile(path, "openvino", faults=(fault,))


_TREE_BEGINNINGS = {"xgboost.json": b"{", "xgboost.ubj": b"{", "model.txt": b"tree"}


def describe_tree(path: Path, file: BinaryIO) -> ModelFile:
    """Describe an open model of decision trees; the name of the file is that of its type."""
    head = file.read(_HEAD_BYTES).lstrip()
    if path.name == "xgboost.model" and head.startswith(b"{"):
        return ModelFile(path, "tree", faults=(_newer_xgboost(head),))
    if recognize(file) is None and head.startswith(_TREE_BEGINNINGS.get(path.name, b"")):
        return ModelFile(path, "tree", not_checked=_CONTENT)
    fault = _fault("tree-not-a-model", file, f"a {path.name} of the FIL backend")
    return ModelFile(path, "tree", faults=(fault,))


def _newer_xgboost(head: bytes) -> FileFault:
    is_json = head[1:2] in (b'"', b"\n", b" ", b"\r")
    model_type, name = ("xgboost_json", "xgboost.json") if is_json else ("xgboost_ubj", "xgboost.ubj")
    message = f"is not in XGBoost's old binary format: it is {'JSON' if is_json else 'UBJSON'}"
    hint = f'name it {name}, and set the parameter model_type to "{model_type}"'
    return FileFault("tree-not-a-model", message, hint)


def describe_dali(path: Path, file: BinaryIO) -> ModelFile:
    """Describe an open DALI pipeline: a serialized pipeline, or Python code with ``@autoserialize``."""
    if recognize(file) is None:
        return ModelFile(path, "dali", not_checked=_CONTENT)
    return ModelFile(path, "dali", faults=(_fault("dali-not-a-pipeline", file, "a DALI pipeline"),))


def describe_saved_model(path: Path) -> ModelFile:
    """Describe the folder of a SavedModel."""
    if (path / "saved_model.pb").is_file():
        return ModelFile(path, "savedmodel", not_checked=_CONTENT)
    message = "the folder does not contain saved_model.pb"
    hint = "copy the content of the folder that tf.saved_model.save wrote"
    return ModelFile(path, "savedmodel", faults=(FileFault("savedmodel-not-a-model", message, hint),))


def _fault(code: FaultCode, file: BinaryIO, wanted: str) -> FileFault:
    wrong = recognize(file)
    if wrong is None:
        return FileFault(code, f"is not {wanted}", "export or copy the model to this file again")
    return FileFault(code, f"is not {wanted}: it is {wrong.description}", wrong.hint)
