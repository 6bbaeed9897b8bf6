"""Packed environments of others: bounds on their names, their metadata and their lock files."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from constructs_triton_core.errors import ArchiveError
from triton_model_check.artifacts.environments import contents
from triton_model_check.artifacts.environments.contents import read_contents
from triton_model_check.artifacts.environments.lock import LOCK_MEMBER
from triton_model_check.model_config import packed_environment
from triton_model_check.model_config.packed_environment import read_environment
from triton_model_check.untrusted.tar_reader import UnpackLimits

SITE = "lib/python3.12/site-packages"
METADATA = b"Metadata-Version: 2.1\nName: a\nVersion: 1\n"


def packed(path: Path, members: dict[str, bytes]) -> Path:
    """Write an archive with these files."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {f"{SITE}/a-1.dist-info/METADATA": bytes((1 << 20) + 1)},
            "METADATA must have at most 1048576 bytes",
        ),
        ({LOCK_MEMBER: bytes((16 << 20) + 1)}, "must have at most 16777216 bytes"),
    ],
    ids=["metadata", "lock"],
)
def test_contents_are_bounded(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    """A member beyond its bound is one error."""
    with pytest.raises(ArchiveError, match=message):
        read_contents(packed(tmp_path / "e.tar", members))


def test_metadata_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand packages with 1 MiB of metadata each would take 10 GiB of memory."""
    assert (contents._MOST_BYTES_IN_ALL, contents._MOST_PACKAGES) == (256 << 20, 10_000)
    monkeypatch.setattr(contents, "_MOST_BYTES_IN_ALL", 100_000)
    monkeypatch.setattr(contents, "_MOST_PACKAGES", 8)
    long = {f"{SITE}/a{n}-1.dist-info/METADATA": METADATA + b"License: x\n" * 2000 for n in range(5)}
    libraries = {f"{SITE}/a.libs/{n}{'x' * 1000}": b"" for n in range(101)}
    many = {f"{SITE}/a{n}-1.dist-info/METADATA": METADATA for n in range(9)}
    for members in (long, libraries, many):
        with pytest.raises(ArchiveError, match="MiB of metadata; pass an environment"):
            read_contents(packed(tmp_path / "e.tar", {f"{SITE}/b-1.dist-info/METADATA": METADATA, **members}))


def test_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long names and large tags are left out, and of too many members the rest is not known."""
    wheel = f"{SITE}/{{}}-1.dist-info/WHEEL"
    members = {
        f"{SITE}/{'x/' * 2100}module.py": b"",
        f"{SITE}/known/__init__.py": b"",
        wheel.format("large"): b"Tag: py3-none-any\n" * 4000,
        wheel.format("small"): b"Tag: py3-none-any\n",
    }
    found = read_environment(str(packed(tmp_path / "e.tar", members)))
    assert found is not None
    assert found.is_complete
    assert max(map(len, found.names)) < 4096
    assert len(found.wheels) == 1
    limits = packed_environment._LIMITS
    assert (limits.max_members, limits.max_bytes) == (200_000, 4 << 30)
    monkeypatch.setattr(packed_environment, "_LIMITS", UnpackLimits(max_members=3))
    rest = read_environment(str(packed(tmp_path / "f.tar", members)))
    assert rest is not None
    assert not rest.is_complete
