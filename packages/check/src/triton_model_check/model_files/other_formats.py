"""Describes formats of which only the beginning is checked: OpenVINO, SavedModel, DALI, GraphDef.

Source of the rules: the openvino, tensorflow and dali backends of Triton r24.10.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from triton_model_check.model_files.model_file import FileFault, ModelFile, ModelFormat
from triton_model_check.model_files.wrong_content import pointer_fault, recognize

_HEAD_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_LARGEST_XML_BYTES = 64 << 20
_CONTENT = ("content not checked",)
_AGAIN = "export or copy the model to this file again"
_WANTED: dict[ModelFormat, str] = {
    "openvino": "an OpenVINO model",
    "tree": "a model of decision trees",
    "savedmodel": "a SavedModel",
    "dali": "a DALI pipeline",
    "unknown": "a model",
}


def describe_by_content(path: Path, file: BinaryIO, model_format: ModelFormat) -> ModelFile:
    """Describe an open file of which only what is certainly not a model is recognized."""
    wrong = recognize(file)
    if wrong is None:
        return ModelFile(path, model_format, not_checked=_CONTENT)
    message = f"is not {_WANTED[model_format]}: it is {wrong.description}"
    return _faulty(path, model_format, message, wrong.hint)


def _faulty(path: Path, model_format: ModelFormat, message: str, hint: str) -> ModelFile:
    return ModelFile(path, model_format, faults=(FileFault("model-file-format", message, hint),))


def describe_openvino(path: Path, file: BinaryIO) -> ModelFile:
    """Describe an open ``model.xml``; its weights are in the ``.bin`` file of the same name."""
    described = describe_by_content(path, file, "openvino")
    if described.faults:
        return described
    file.seek(0)
    if b"<net" not in file.read(_HEAD_BYTES):
        return _faulty(
            path, "openvino", "is not an OpenVINO model: it has no element <net>", _AGAIN
        )
    weights = path.with_suffix(".bin")
    if weights.is_file():
        return replace(described, data_files=(weights.name,))
    if weights.exists() or not _has_constants(file):
        return described
    hint = f'copy "{weights.name}" beside "{path.name}"'
    return _faulty(path, "openvino", f'the weights "{weights.name}" do not exist', hint)


def _has_constants(file: BinaryIO) -> bool:
    """Whether a layer in the first 64 MiB reads weights;
    a model without one needs no other file.
    """
    wanted, before = b'type="Const"', b""
    file.seek(0)
    while file.tell() < _LARGEST_XML_BYTES and (chunk := file.read(_CHUNK_BYTES)):
        if wanted in before + chunk:
            return True
        before = chunk[-len(wanted) :]
    return False


SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt", "saved_model.cpb")


def describe_saved_model(path: Path) -> ModelFile:
    """Describe a SavedModel, which is a folder."""
    if not path.is_dir():
        hint = f'make "{path.name}" the folder that tf.saved_model.save wrote'
        return _faulty(path, "savedmodel", "is not a SavedModel: it is a file, not a folder", hint)
    found = next((path / name for name in SAVED_MODELS if (path / name).is_file()), None)
    if found is None:
        hint = "copy the content of the folder that tf.saved_model.save wrote"
        return _faulty(path, "savedmodel", "the folder does not contain saved_model.pb", hint)
    with found.open("rb") as file:
        pointer = pointer_fault(file, "model-file-format")
        if pointer is not None:
            fault = replace(pointer, file=f"{path.name}/{found.name}")
            return ModelFile(path, "savedmodel", faults=(fault,))
        return describe_by_content(path, file, "savedmodel")
