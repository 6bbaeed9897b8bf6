"""Describes a TorchScript archive: a zip file with the code of the model.

``torch.jit.save`` writes ``constants.pkl``, ``data.pkl`` and ``code/``. ``torch.save`` and
``torch.export.save`` write zip files too, which the backend cannot load. No pickle is executed; only names
in it are read.
"""

from __future__ import annotations

import pickletools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from constructs_triton.model_files.model_file import FileFault, ModelFile, ModelTensor
from constructs_triton.model_files.wrong_content import PICKLE, ZIP, recognize

__all__ = ["describe_torchscript"]

_LARGEST_MEMBER_BYTES = 8 << 20
_MOST_CODE_FILES = 2_000
_FORWARD = re.compile(r"\n  def forward\(self: [^\n]*?(?:\)|,)(?P<rest>.*?)->", re.DOTALL)
_ARGUMENT = re.compile(r"\s*(?P<name>\w+): (?P<type>.+?)\s*", re.DOTALL)
_DEVICE = re.compile(r"torch\.device\(\"(\w+(?::\d+)?)\"\)")
_UNREADABLE = (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError)


def describe_torchscript(path: Path, file: BinaryIO) -> ModelFile:
    """Describe an open TorchScript file: the arguments of ``forward``, and the devices in its code."""
    try:
        with zipfile.ZipFile(file) as archive:
            return _described(path, archive)
    except _UNREADABLE:
        return ModelFile(path, "torchscript", faults=(_unreadable(file),))


def _unreadable(file: BinaryIO) -> FileFault:
    wrong = recognize(file)
    if wrong is None:
        return _not_a_model("something else", _SCRIPT)
    if wrong is PICKLE:
        return _not_a_model("a pickle, as older versions of torch.save write", _SCRIPT)
    if wrong is ZIP:
        return _not_a_model("an incomplete zip archive", "copy the whole file again")
    return _not_a_model(wrong.description, wrong.hint)


_SCRIPT = "save torch.jit.script(model) or torch.jit.trace(model, example) with torch.jit.save"


def _not_a_model(what: str, hint: str) -> FileFault:
    return FileFault("torchscript-not-a-model", f"is not a TorchScript archive: it is {what}", hint)


def _described(path: Path, archive: zipfile.ZipFile) -> ModelFile:
    names = archive.namelist()
    inner = {name.partition("/")[2]: name for name in names}
    if "constants.pkl" not in inner and not any(name.startswith("code/") for name in inner):
        return ModelFile(path, "torchscript", faults=(_other_archive(inner),))
    code = dict(_code(archive, inner))
    devices = sorted({found for text in code.values() for found in _DEVICE.findall(text)})
    return ModelFile(
        path,
        "torchscript",
        inputs=tuple(_arguments(archive, inner, code)),
        devices=tuple(devices),
        not_checked=("types and shapes not checked",),
    )


def _other_archive(inner: dict[str, str]) -> FileFault:
    if any(name.endswith(("exported_program.json", "archive_format", "models/model.json")) for name in inner):
        return _not_a_model("an exported program (.pt2) of torch.export", _SCRIPT)
    if "data.pkl" in inner:
        return _not_a_model("a state_dict or a pickled module of torch.save", _SCRIPT)
    return _not_a_model("a zip archive without the code of a model", _SCRIPT)


def _code(archive: zipfile.ZipFile, inner: dict[str, str]) -> Iterator[tuple[str, str]]:
    files = [name for name in inner if name.startswith("code/") and name.endswith(".py")]
    for name in files[:_MOST_CODE_FILES]:
        content = _read(archive, inner[name])
        if content is not None:
            yield name, content.decode("utf-8", "replace")


def _read(archive: zipfile.ZipFile, name: str) -> bytes | None:
    if archive.getinfo(name).file_size > _LARGEST_MEMBER_BYTES:
        return None
    return archive.read(name)


def _arguments(
    archive: zipfile.ZipFile, inner: dict[str, str], code: dict[str, str]
) -> Iterator[ModelTensor]:
    """Yield the arguments of the outermost module's ``forward``, with their types in place of data types."""
    module, _, name = _outermost_class(archive, inner).partition(" ")
    text = code.get(f"code/{module.replace('.', '/')}.py", "")
    _, found, body = text.partition(f"class {name}(Module):")
    match = _FORWARD.search(body.partition("\nclass ")[0]) if found else None
    for part in _split(match["rest"]) if match else ():
        argument = _ARGUMENT.fullmatch(part)
        if argument:
            yield ModelTensor(argument["name"], argument["type"].partition("=")[0].strip(), None)


def _outermost_class(archive: zipfile.ZipFile, inner: dict[str, str]) -> str:
    """Return module and name of the class of the model, which is the first that the pickle names."""
    content = _read(archive, inner["data.pkl"]) if "data.pkl" in inner else None
    for opcode, argument, _ in pickletools.genops(content or b"."):
        if opcode.name == "GLOBAL":
            return str(argument)
    return ""


def _split(arguments: str) -> Iterator[str]:
    """Split at the commas outside brackets; the closing bracket of the list is the last character."""
    depth, start = 0, 0
    for index, character in enumerate(arguments):
        depth += (character in "([") - (character in ")]")
        if depth < 0 or (character == "," and depth == 0):
            yield arguments[start:index]
            start = index + 1
        if depth < 0:
            return
