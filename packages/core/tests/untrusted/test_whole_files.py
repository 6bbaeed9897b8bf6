"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from constructs_triton_core.untrusted.regular_files import csv_text, write_whole


def test_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full in the middle loses neither the old file nor room."""
    path = tmp_path / "prices.csv"
    write_whole(path, csv_text([["a", 1]]))
    path.chmod(0o600)
    usual = Path.write_text

    def fail(self: Path, text: str, **settings: str) -> int:
        usual(self, text[:1], **settings)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    monkeypatch.undo()
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [
        ("prices.csv", "a,1\n")
    ]
    write_whole(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


def test_links_and_devices_stay(tmp_path: Path) -> None:
    """The file that a link names is written, and a device is not replaced."""
    link = tmp_path / "link"
    link.symlink_to("file")
    write_whole(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "text"
    terminal, device = os.openpty()  # in a file system where no file can take its place
    write_whole(Path(os.ttyname(device)), "text")
    assert Path(os.ttyname(device)).is_char_device()
    assert os.read(terminal, 4) == b"text"
    os.close(device)
    os.close(terminal)
