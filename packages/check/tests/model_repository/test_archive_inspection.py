"""Inspecting an archive that another tool created."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_repositories import write_repository

from constructs_triton_core.errors import ArchiveError
from triton_model_check.model_repository import pack
from triton_model_check.model_repository.archive_inspection import inspect_archive

FILES = {
    "net/config.pbtxt": b'backend: "python"\n',
    "net/1/model.py": b"class TritonPythonModel: ...\n",
}


def write_tar(path: Path, *more: tarfile.TarInfo) -> Path:
    """A valid model archive with ``more`` members at its end."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for info in more:
            tar.addfile(info)
    return path


def member(name: str, file_type: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = file_type, target
    return info


def test_archive_of_another_tool_has_the_same_digest(tmp_path: Path) -> None:
    """GNU tar's archive of a repository and ``pack``'s have the same digest and models."""
    repository = write_repository(tmp_path / "r", FILES)
    ours = pack(repository, ["net"], tmp_path / "out")
    subprocess.run(["tar", "-czf", tmp_path / "gnu.tar.gz", "-C", tmp_path / "r", "."], check=True)
    contents = inspect_archive(tmp_path / "gnu.tar.gz")
    assert (contents.digest, contents.models) == (ours.digest, ("net",))
    assert contents.unpacked_size_bytes == ours.unpacked_size_bytes == sum(map(len, FILES.values()))
    assert contents.size_bytes == (tmp_path / "gnu.tar.gz").stat().st_size


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (member("../evil"), "member '../evil' would be unpacked outside its folder"),
        (member("net/../../evil"), "member 'net/../../evil' would be unpacked outside its folder"),
        (member("/etc/passwd"), "member '/etc/passwd' would be unpacked outside its folder"),
        (member("net/1/a", tarfile.SYMTYPE, "/etc"), "member 'net/1/a' is a symbolic link"),
        (member("net/1/a", tarfile.LNKTYPE, "net/1/model.py"), "member 'net/1/a' is a hard link"),
        (member("net/1/a", tarfile.CHRTYPE), "member 'net/1/a' is a device"),
        (member("net/1/a", tarfile.FIFOTYPE), "member 'net/1/a' is a named pipe"),
        (member("./net/1/model.py"), "member './net/1/model.py' occurs twice"),
        (member("net/1/a\udcff"), "has a name that is not UTF-8"),
        (member("config.pbtxt"), "member 'config.pbtxt' is at the archive's root"),
        (member("assets/readme.txt"), "directory 'assets' is not a model"),
    ],
)
def test_error_names_the_member(tmp_path: Path, bad: tarfile.TarInfo, reason: str) -> None:
    """Members outside the folder, of another type, or outside a model directory are named."""
    with pytest.raises(ArchiveError) as error:
        inspect_archive(write_tar(tmp_path / "a.tar.gz", bad))
    assert reason in str(error.value)
    assert str(tmp_path / "a.tar.gz") in str(error.value)


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    """One run reports every invalid member."""
    bad = [member("/a"), member("net/b", tarfile.SYMTYPE, "c"), member("stray/d")]
    with pytest.raises(ArchiveError) as error:
        inspect_archive(write_tar(tmp_path / "a.tar.gz", *bad))
    assert len(str(error.value).splitlines()) == 3


def test_archive_without_models_is_an_error(tmp_path: Path) -> None:
    """An empty archive contains no model."""
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz"):
        pass
    with pytest.raises(ArchiveError, match="contains no model directory"):
        inspect_archive(tmp_path / "a.tar.gz")


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip_checksum(content: bytes) -> bytes:
    return content[:-8] + bytes([content[-8] ^ 1]) + content[-7:]


def flip_content(content: bytes) -> bytes:
    return content[:40] + bytes([content[40] ^ 255]) + content[41:]


@pytest.mark.parametrize(
    "damage", [cut, flip_checksum, flip_content, gzip.decompress, lambda _: b""]
)
def test_damaged_archive_is_an_error(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """A file that is cut off, damaged or not gzip raises this package's error,
    not one of a library.
    """
    path = write_tar(tmp_path / "a.tar.gz")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ArchiveError, match=r"a\.tar\.gz: cannot be read as \.tar\.gz"):
        inspect_archive(path)


def test_missing_archive_is_an_error(tmp_path: Path) -> None:
    """The error names the path."""
    with pytest.raises(ArchiveError, match=r"none\.tar\.gz: cannot be read"):
        inspect_archive(tmp_path / "none.tar.gz")
