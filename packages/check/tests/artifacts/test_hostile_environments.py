"""Packed environments of others: bounds on their names."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from triton_model_check.model import packed_environment
from triton_model_check.model.packed_environment import read_environment
from triton_model_check.untrusted.tar_reader import UnpackLimits

SITE = "lib/python3.12/site-packages"


def packed(path: Path, members: dict[str, bytes]) -> Path:
    """Write an archive with these files."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


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
