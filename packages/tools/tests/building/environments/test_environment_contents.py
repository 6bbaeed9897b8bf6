"""What ``env show`` reads of packed environments of others:
bounds on their metadata and their lock files.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from constructs_triton_core.errors import ArchiveError
from constructs_triton_tools.building.environments import contents
from constructs_triton_tools.building.environments.contents import read_contents
from triton_model_check.artifacts.environments.lock import LOCK_MEMBER

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
    long = {
        f"{SITE}/a{n}-1.dist-info/METADATA": METADATA + b"License: x\n" * 2000 for n in range(5)
    }
    libraries = {f"{SITE}/a.libs/{n}{'x' * 1000}": b"" for n in range(101)}
    many = {f"{SITE}/a{n}-1.dist-info/METADATA": METADATA for n in range(9)}
    for members in (long, libraries, many):
        with pytest.raises(ArchiveError, match="MiB of metadata; pass an environment"):
            read_contents(
                packed(tmp_path / "e.tar", {f"{SITE}/b-1.dist-info/METADATA": METADATA, **members})
            )
