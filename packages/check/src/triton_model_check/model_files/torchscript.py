"""Describes a TorchScript archive: a zip file with the code of the model.

``torch.jit.save`` writes ``constants.pkl``, ``data.pkl`` and ``code/``. ``torch.save`` and
``torch.export.save`` write zip files too, which the backend cannot load. No pickle is executed;
only names in it are read. Source of the rules: pytorch_backend r24.10 to r26.05,
ModelInstanceState::ValidateInputs.
"""

from __future__ import annotations

import io
import os
import pickletools
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.facts.published import load
from triton_model_check.model_files.model_file import FileFault, ModelFile, ModelTensor
from triton_model_check.model_files.wrong_content import PICKLE, ZIP, recognize

_LARGEST_MEMBER_BYTES = 8 << 20
_LARGEST_CODE_BYTES = 32 << 20
_LARGEST_LIST_BYTES = 4 << 20
"""The list of the members. zipfile keeps about 15 times its size;
a model of 10,000 tensors has 1 MiB.
"""
_LONGEST_ARGUMENTS = 16 << 10
_MOST_CODE_FILES = 2_000
# PyTorch reads no others; Python's readers of bzip2 and LZMA expand a small member to any size.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The class of the model is named at the beginning.
_READ_PICKLE_BYTES = 1 << 16
_FORWARD = "\n  def forward(self: "
_END_OF_SELF = re.compile(r"[,)\n]")
_NAME = re.compile(r"\w+")
_TENSOR = re.compile(r"(data|constants)/\d+")
_STORAGES = load("names")["torch_storages"]
_DEVICE = re.compile(r"torch\.device\(\"(\w+(?::\d+)?)\"\)")
_UNREADABLE = (
    OSError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OverflowError,  # a member at an offset beyond 64 bits
)

_SCRIPT = "save torch.jit.script(model) or torch.jit.trace(model, example) with torch.jit.save"
_EXPORTED = ("exported_program.json", "archive_format", "models/model.json")


def describe_torchscript(path: Path, file: BinaryIO) -> ModelFile:
    """Describe an open TorchScript file: the arguments of ``forward``,
    and the devices in its code.
    """
    try:
        archive = _Archive(zipfile.ZipFile(_ListReader(file)))
    except OverBudgetError as error:
        return ModelFile(path, "torchscript", not_checked=(f"content not checked: {error}",))
    except _UNREADABLE:
        return ModelFile(path, "torchscript", faults=(_unreadable(file),))
    if not archive.is_torchscript:
        return ModelFile(path, "torchscript", faults=(_other_archive(archive.members),))
    inputs = tuple(_arguments(archive))
    traced = _traced_types(archive.read("traced_inputs.pkl"))
    has_types = len(traced) == len(inputs) and all(each.data_type == "Tensor" for each in inputs)
    return ModelFile(
        path,
        "torchscript",
        inputs=inputs,
        devices=tuple(
            sorted({found for text in archive.code.values() for found in _DEVICE.findall(text)})
        ),
        faults=tuple(_wrong_arguments(inputs)),
        traced_types=traced if has_types else (),
        not_checked=("shapes not checked" if has_types else "types and shapes not checked",),
        certain_weight_bytes=archive.tensor_bytes,
    )


class _ListReader(io.RawIOBase):
    """The file. A call reads at most 4 MiB: zipfile reads the list of members in one piece."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Read bytes; raises ``OverBudgetError`` if there are too many."""
        content = self._file.read(
            size if 0 <= size <= _LARGEST_LIST_BYTES else _LARGEST_LIST_BYTES + 1
        )
        if len(content) > _LARGEST_LIST_BYTES:
            raise OverBudgetError(
                f"its list of files has more than {_LARGEST_LIST_BYTES >> 20} MiB"
            )
        return content


# Files that are not TorchScript.


def _unreadable(file: BinaryIO) -> FileFault:
    """Return the fault of a file that is no zip archive."""
    wrong = recognize(file)
    if wrong is None:
        return _not_a_model("", _SCRIPT)
    if wrong is PICKLE:
        return _not_a_model("a pickle, as older versions of torch.save write", _SCRIPT)
    if wrong is ZIP:
        return _not_a_model("an incomplete zip archive", "copy the whole file again")
    return _not_a_model(wrong.description, wrong.hint)


def _not_a_model(what: str, hint: str) -> FileFault:
    message = "is not a TorchScript archive" + (f": it is {what}" if what else "")
    return FileFault("torchscript-not-a-model", message, hint)


def _other_archive(members: Mapping[str, str]) -> FileFault:
    """Return the fault of a zip archive that is no TorchScript model."""
    if any("aotinductor/" in name for name in members):
        hint = 'name it model.pt2, and set platform: "torch_aoti" (from image 26.03 on)'
        return _not_a_model("a package (.pt2) of AOT Inductor", hint)
    if any(name.endswith(_EXPORTED) for name in members):
        return _not_a_model("an exported program (.pt2) of torch.export", _SCRIPT)
    if "data.pkl" in members:
        return _not_a_model("a state_dict or a pickled module of torch.save", _SCRIPT)
    return _not_a_model("a zip archive without the code of a model", _SCRIPT)


# The code of the model.


@dataclass
class _Archive:
    """The zip archive; a member that cannot be read counts as absent,
    because PyTorch may still read it.
    """

    archive: zipfile.ZipFile

    @cached_property
    def members(self) -> dict[str, str]:
        """Each member: its path in the outermost folder, and its full name."""
        return {name.partition("/")[2]: name for name in self.archive.namelist()}

    @property
    def is_torchscript(self) -> bool:
        return "constants.pkl" in self.members or any(
            name.startswith("code/") for name in self.members
        )

    @property
    def tensor_bytes(self) -> int:
        """The bytes of all tensors, which ``torch::jit::load`` moves to the device of the instance.

        Source: pytorch torch/csrc/jit/serialization/import.cpp and unpickler.cpp, readArchive.
        """
        tensors = (full for name, full in self.members.items() if _TENSOR.fullmatch(name))
        return sum(self.archive.getinfo(full).file_size for full in tensors)

    @cached_property
    def code(self) -> dict[str, str]:
        """The text of each file with code."""
        files = [name for name in self.members if name.startswith("code/") and name.endswith(".py")]
        texts: dict[str, str] = {}
        left = _LARGEST_CODE_BYTES
        for name in files[:_MOST_CODE_FILES]:
            texts[name] = self.read(name, left).decode("utf-8", "replace")
            left -= len(texts[name])
        return texts

    def read(self, member: str, max_bytes: int = _LARGEST_MEMBER_BYTES) -> bytes:
        """Return the content of a member, or ``b""`` if it is absent, large,
        damaged or not for PyTorch.
        """
        if member not in self.members:
            return b""
        entry = self.archive.getinfo(self.members[member])
        is_large = entry.file_size > min(max_bytes, _LARGEST_MEMBER_BYTES)
        if is_large or entry.compress_type not in _COMPRESSIONS:
            return b""
        try:
            return self.archive.read(entry)
        except _UNREADABLE:
            return b""


def _arguments(archive: _Archive) -> Iterator[ModelTensor]:
    """Yield the arguments of the outermost module's ``forward``,
    with their types in place of data types.
    """
    module, _, name = _outermost_class(archive.read("data.pkl")).partition(" ")
    text = archive.code.get(f"code/{module.replace('.', '/')}.py", "")
    _, found, body = text.partition(f"class {name}(Module):")
    for part in _split(_rest_of_forward(body.partition("\nclass ")[0])) if found else ():
        argument, colon, rest = part.strip().partition(": ")
        data_type = rest.partition("=")[0].strip()
        if colon and data_type and _NAME.fullmatch(argument):
            yield ModelTensor(argument, data_type, None)


def _traced_types(content: bytes) -> tuple[str, ...]:
    """Return the data types of the tensors that ``torch.jit.trace`` was called with, in order.

    The pickle has ``{"forward": [tensor, ...]}``; each tensor names the class of its storage.
    """
    try:
        names = [
            name.removeprefix("torch ") for name in _globals(content) if name.startswith("torch ")
        ]
    except ValueError:
        return ()
    known = tuple(_STORAGES.get(name, "") for name in names)
    return known if all(known) else ()


def _globals(content: bytes) -> Iterator[str]:
    """Yield the classes and functions that a pickle names, each time that it uses one."""
    memo: dict[object, str] = {}
    last = ""
    for opcode, argument, _ in pickletools.genops(content[:_READ_PICKLE_BYTES]):
        if opcode.name == "GLOBAL":
            last = str(argument)
            yield last
        elif opcode.name in ("BINPUT", "LONG_BINPUT"):
            memo[argument], last = last, ""
        else:
            last = ""
            if opcode.name in ("BINGET", "LONG_BINGET") and memo.get(argument):
                yield memo[argument]


def _rest_of_forward(body: str) -> str:
    """Return what follows ``self`` in the arguments of ``forward``, up to the closing bracket."""
    _, _, rest = body.partition(_FORWARD)
    signature, arrow, _ = rest.partition("->")
    end_of_self = _END_OF_SELF.search(signature)
    if not arrow or end_of_self is None or end_of_self[0] != ",":
        return ""
    return signature[end_of_self.end() :][:_LONGEST_ARGUMENTS]


def _outermost_class(content: bytes) -> str:
    """Return module and name of the class of the model,
    which is the first that the pickle names.
    """
    try:
        for opcode, argument, _ in pickletools.genops(content[:_READ_PICKLE_BYTES]):
            if opcode.name == "GLOBAL":
                return str(argument)
    except ValueError:
        pass
    return ""


def _split(arguments: str) -> Iterator[str]:
    """Split at the commas outside brackets; the closing bracket of the list
    is the last character.
    """
    depth, start = 0, 0
    for index, character in enumerate(arguments):
        depth += (character in "([") - (character in ")]")
        if depth < 0 or (character == "," and depth == 0):
            yield arguments[start:index]
            start = index + 1
        if depth < 0:
            return


_NO_TENSORS = ("Optional[", "Tuple[", "Dict[")
_NUMBERS = ("int", "float", "bool", "str", "number")


def _wrong_arguments(arguments: tuple[ModelTensor, ...]) -> Iterator[FileFault]:
    """The backend passes tensors, lists of strings, or one dictionary of all tensors."""
    if len(arguments) == 1 and arguments[0].data_type.startswith("Dict["):
        return
    for each in arguments:
        if each.data_type in _NUMBERS or each.data_type.startswith(_NO_TENSORS):
            message = (
                f"An input of type '{each.data_type}' was detected in the model: the argument "
                f'"{each.name}" of forward'
            )
            hint = "make it a Tensor, or save a module whose forward takes tensors only"
            yield FileFault("torchscript-arguments", message, hint)
