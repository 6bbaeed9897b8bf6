"""Files that are written whole or not at all, and never through what a repository brings."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from constructs_triton_core.untrusted.regular_files import csv_text
from constructs_triton_core.untrusted.written_files import (
    new_folder,
    open_to_append,
    write_whole,
    written_whole,
)


def test_failure_leaves_the_old_file(tmp_path: Path) -> None:
    """What ends the writing in the middle loses neither the old file nor room."""
    path = tmp_path / "prices.csv"
    write_whole(path, csv_text([["a", 1]]))
    path.chmod(0o600)
    with suppress(ZeroDivisionError), written_whole(path) as file:
        file.write(b"n")
        raise ZeroDivisionError
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [
        ("prices.csv", "a,1\n")
    ]
    write_whole(path, "new\r\n", is_synced=True)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new\r\n", 0o600)


def test_new_files_have_the_usual_mode(tmp_path: Path) -> None:
    """A report is as readable as any other new file; a private one belongs to the user alone."""
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "report", "text")
        write_whole(tmp_path / "private", "text", is_private=True)
    finally:
        os.umask(before)
    assert (tmp_path / "report").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


def _link(place: Path) -> None:
    place.symlink_to("victim")


def _dangling_link(place: Path) -> None:
    place.symlink_to("nothing")


@pytest.mark.parametrize(
    ("put", "found"),
    [
        (_link, "a link instead of a file"),
        (_dangling_link, "a link instead of a file"),
        (os.mkfifo, "a named pipe instead of a file"),
        (Path.mkdir, "Is a directory"),
    ],
)
@pytest.mark.parametrize("write", [write_whole, open_to_append])
def test_only_regular_files_are_replaced(
    tmp_path: Path,
    put: Callable[[Path], object],
    found: str,
    write: Callable[..., object],
) -> None:
    """What stands in the place of the file is named, and stays; nothing is written through it."""
    (tmp_path / "victim").write_text("precious")
    put(tmp_path / "report")
    before = sorted(each.name for each in tmp_path.iterdir())
    with pytest.raises(OSError, match=found):
        write(*((tmp_path / "report", "text") if write is write_whole else (tmp_path / "report",)))
    assert sorted(each.name for each in tmp_path.iterdir()) == before
    assert (tmp_path / "victim").read_text() == "precious"


def test_link_that_comes_while_the_file_is_written_is_seen(tmp_path: Path) -> None:
    """The name is looked at again before it is taken."""
    writing = written_whole(tmp_path / "report")
    writing.__enter__().write(b"text")
    (tmp_path / "report").symlink_to("victim")
    with pytest.raises(OSError, match="a link instead of a file"):
        writing.__exit__(None, None, None)
    assert [each.name for each in tmp_path.iterdir()] == ["report"]


def test_name_of_the_draft_cannot_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even who knew the name of the draft could not have it written through a link."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".constructs-triton-known").symlink_to("victim")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "report", "text")
    assert (tmp_path / "victim").read_text() == "precious"


def test_error_names_the_file(tmp_path: Path) -> None:
    """A folder that does not exist is an error with the name that the user gave."""
    path = tmp_path / "missing" / "report"
    with pytest.raises(FileNotFoundError) as raised:
        write_whole(path, "text")
    assert str(raised.value) == f"[Errno 2] No such file or directory: '{path}'"


def test_full_disk_names_the_file(tmp_path: Path) -> None:
    """A write that the disk refuses is an error with the name of the file."""
    path = tmp_path / "report"
    with pytest.raises(OSError, match="No space left") as raised, written_whole(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(path)
    assert not list(tmp_path.iterdir())


def test_hard_link_is_not_written_through(tmp_path: Path) -> None:
    """The other name of a file keeps its content."""
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "report").hardlink_to(tmp_path / "victim")
    write_whole(tmp_path / "report", "text")
    assert (tmp_path / "victim").read_text() == "precious"


def test_folder_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    """A folder whose name the program derives is not one that a repository leads elsewhere."""
    assert new_folder(tmp_path / "a" / "arrays").is_dir()
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(OSError, match="a link instead of a folder"):
        new_folder(tmp_path / "link")


def test_devices_are_written_in_place() -> None:
    """A terminal is not replaced: no file can take its place."""
    terminal, device = os.openpty()
    write_whole(Path(os.ttyname(device)), "text")
    assert Path(os.ttyname(device)).is_char_device()
    assert os.read(terminal, 4) == b"text"
    os.close(device)
    os.close(terminal)


def test_standard_output_may_be_a_file_with_content(tmp_path: Path) -> None:
    """``command --output-file /dev/stdout >> log`` adds to the log."""
    log = tmp_path / "log"
    log.write_text("before\n")
    code = (
        "from pathlib import Path;"
        "from constructs_triton_core.untrusted.written_files import write_whole;"
        "write_whole(Path('/dev/stdout'), 'text')"
    )
    with log.open("a") as output:
        subprocess.run([sys.executable, "-c", code], stdout=output, check=True)
    assert log.read_text() == "before\ntext"
