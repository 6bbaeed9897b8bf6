"""Model files made to take time or memory: they are described within bounds, or not checked."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest
from check_examples.torch_and_plan import zipped
from cpu_limit import cpu_limit

from triton_model_check.model_files import describe
from triton_model_check.model_files import torchscript as torchscript_reader
from triton_model_check.model_files.model_file import ModelFile


def _described(content: bytes, name: str, folder: Path) -> ModelFile:
    path = folder / name
    path.write_bytes(content)
    return describe(path)


HOSTILE_CODE = {
    "commas": "  def forward(self: N" + "," * 1_000_000,
    "functions": "  def forward(self: N, x: Tensor\n" * 100_000,
    "blanks": "  def forward(self: N, x: " + " " * 1_000_000 + "\0) ->",
    "brackets": "  def forward(self: N, x: " + "[" * 1_000_000 + ") ->",
    "devices": "  " + 'torch.device("' * 100_000 + "a" * 1_000_000,
}


@pytest.mark.parametrize("case", HOSTILE_CODE)
def test_hostile_code_is_read_in_linear_time(case: str, tmp_path: Path) -> None:
    """A model file may come from anyone."""
    pickle = b"\x80\x02c__torch__\nNet\n"
    code = f"class Net(Module):\n{HOSTILE_CODE[case]}".encode()
    content = zipped({"constants.pkl": b"", "data.pkl": pickle, "code/__torch__.py": code})
    with cpu_limit():
        assert _described(content, "model.pt", tmp_path).faults == ()


def test_code_of_all_members_together_is_bounded(tmp_path: Path) -> None:
    """A small archive may unpack to gigabytes of code."""
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for index in range(20):
            archive.writestr(f"model/code/{index}.py", b" " * (8 << 20))
    with path.open("rb") as file:
        code = torchscript_reader._Archive(zipfile.ZipFile(file)).code
        assert sum(map(len, code.values())) == 32 << 20


def test_list_of_many_members_is_not_read(tmp_path: Path) -> None:
    """zipfile would need seconds and hundreds of megabytes for a list of a few megabytes.

    See https://github.com/python/cpython/issues/153460.
    """
    path = tmp_path / "model.pt"
    with path.open("wb") as file:
        file.truncate(64 << 20)
        file.seek(0, 2)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, 64 << 20, 0, 0))
    assert describe(path).not_checked == (
        "content not checked: its list of files has more than 4 MiB",
    )


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_that_pytorch_cannot_read_are_not_read(compression: int, tmp_path: Path) -> None:
    """A damaged one raises an error of its own in Python, and a small one may expand to gigabytes.

    See https://github.com/python/cpython/issues/156002.
    """
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("model/constants.pkl", b"")
        archive.writestr("model/data.pkl", b"\x80\x02c__torch__\nNet\n" * 20)
    content = bytearray(path.read_bytes())
    damaged = content.index(b"model/data.pkl") + 19
    content[damaged : damaged + 11] = b"\xff" * 11
    path.write_bytes(content)
    assert (describe(path).faults, describe(path).inputs) == ((), ())


def test_member_at_an_impossible_offset_is_absent(tmp_path: Path) -> None:
    """An offset of 64 bits is beyond what a file can be asked for."""
    path = tmp_path / "model.pt"
    content = bytearray(zipped({"constants.pkl": b"", "data.pkl": b"c__torch__\nNet\n"}))
    entry = content.rindex(b"PK\1\2")
    extra = struct.pack("<HHQ", 1, 8, (1 << 64) - 1)
    content[entry + 30 : entry + 32] = struct.pack("<H", len(extra))
    content[entry + 42 : entry + 46] = b"\xff" * 4
    name_end = entry + 46 + len("model/data.pkl")
    content[name_end:name_end] = extra
    size = content.index(b"PK\5\6") + 12
    content[size : size + 4] = struct.pack(
        "<L", struct.unpack_from("<L", content, size)[0] + len(extra)
    )
    path.write_bytes(content)
    assert (describe(path).faults, describe(path).inputs) == ((), ())


def test_long_file_name_is_a_missing_file(tmp_path: Path) -> None:
    """A name of 5,000 letters, which no file can have,
    is a fault of the model and not of the disk.
    """
    for name in ("model.onnx", "model.pt", "model.savedmodel", "model.xml"):
        (fault,) = describe(tmp_path / ("x" * 5000 + name)).faults
        assert fault.code in ("model-file-missing", "model-file-format")


def test_only_the_beginning_of_a_large_xml_is_searched(tmp_path: Path) -> None:
    """A file without content may be of any size, and reading it takes minutes."""
    path = tmp_path / "model.xml"
    with path.open("wb") as file:
        file.write(b"<net>")
        file.truncate(1 << 40)
    with cpu_limit():
        assert describe(path).faults == ()


def test_file_of_many_empty_functions_is_not_read(tmp_path: Path) -> None:
    """A function of three bytes takes more time and memory than a field."""
    with cpu_limit():
        found = _described(b"\x08\x08\x3a\x00" + b"\xca\x01\x00" * 500_000, "model.onnx", tmp_path)
    assert found.not_checked == ("content not checked: it has more than 280000 fields and values",)
