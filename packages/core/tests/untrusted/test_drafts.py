"""What a killed command leaves is deleted by the next one, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from constructs_triton_core.untrusted.drafts import (
    partial_folder,
    place_folder,
    place_of_draft,
    remove_abandoned,
    remove_abandoned_files,
    sole_writer,
    temporary_folder,
)
from constructs_triton_core.untrusted.written_files import write_whole, written_whole

_DAY = 86_400
_WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from constructs_triton_core.untrusted.drafts import partial_folder
from constructs_triton_core.untrusted.written_files import written_whole
with partial_folder(Path(sys.argv[1])) as folder, written_whole(Path(sys.argv[1], "a")) as file:
    Path(folder, "b").write_text("half")
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


_ADD = """
import sys
from pathlib import Path
from constructs_triton_core.untrusted.drafts import sole_writer
from constructs_triton_core.untrusted.written_files import write_whole
number = Path(sys.argv[1], "number")
for _ in range(50):
    with sole_writer(number.parent):
        write_whole(number, str(int(number.read_text()) + 1))
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The folder in which a killed command was writing a file and a folder."""
    subprocess.run([sys.executable, "-c", _WRITE_AND_DIE, tmp_path], check=False)
    assert len(list(tmp_path.iterdir())) == 2
    return tmp_path


def test_next_file_removes_the_draft_of_a_killed_command(killed: Path) -> None:
    """Only the draft of the file: a folder of the user may have the name of the other one."""
    write_whole(killed / "a", "whole")
    names = sorted(path.name for path in killed.iterdir())
    assert (len(names), names[1], (killed / "a").read_text()) == (2, "a", "whole")
    assert (killed / names[0]).is_dir()


def test_next_folder_removes_all_drafts_of_a_killed_command(killed: Path) -> None:
    """A command that writes a folder deletes files and folders that killed ones have left."""
    with partial_folder(killed) as folder:
        assert list(killed.iterdir()) == [folder]
    assert not list(killed.iterdir())


@pytest.mark.parametrize("remove", [remove_abandoned, remove_abandoned_files])
def test_what_is_being_written_is_kept_whatever_the_clock_says(
    remove: Callable[[Path], None], tmp_path: Path
) -> None:
    """The clock may have gone forward by a day while a command writes."""
    with partial_folder(tmp_path) as folder, written_whole(tmp_path / "a") as file:
        for draft in tmp_path.iterdir():
            os.utime(draft, (time.time() - _DAY,) * 2)
        remove(tmp_path)
        assert len(list(tmp_path.iterdir())) == 2
        assert folder.is_dir()
        file.write(b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


@pytest.mark.parametrize("put", [os.mkfifo, lambda place: place.symlink_to("victim")])
def test_only_files_and_folders_are_drafts(put: Callable[[Path], object], tmp_path: Path) -> None:
    """A named pipe of a repository is not waited for, and a link is not followed."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    put(tmp_path / ".constructs-triton-0123456789abcdef")
    remove_abandoned(tmp_path)
    assert (victim / "file").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may delete in a read-only folder")
def test_read_only_copy_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder is deleted although what was copied into it is read-only."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with temporary_folder() as folder:
        (folder / "models").mkdir()
        (folder / "models" / "file").write_text("")
        (folder / "models").chmod(0o500)
    assert not list(tmp_path.iterdir())


def test_commands_that_add_to_one_file_wait_for_each_other(tmp_path: Path) -> None:
    """Of four processes that add fifty times to a number in a file, no addition is lost."""
    write_whole(tmp_path / "number", "0")
    command = [sys.executable, "-c", _ADD, str(tmp_path)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert (tmp_path / "number").read_text() == "200"


def test_a_stopped_command_is_not_waited_for_without_end(tmp_path: Path) -> None:
    """A command that holds a folder for long is named, so that its user can end it."""
    with (
        sole_writer(tmp_path),
        pytest.raises(OSError, match=r"another command has been writing .* for 0\.1 seconds"),
        sole_writer(tmp_path, seconds=0.1),
    ):
        pass


def test_error_names_the_folder_and_not_the_draft(tmp_path: Path) -> None:
    """A folder that does not exist is an error with its own name."""
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as raised, partial_folder(missing):
        pass
    assert raised.value.filename == str(missing)


@pytest.mark.parametrize("exists", [False, True])
def test_folder_gets_its_place_when_it_is_complete(exists: bool, tmp_path: Path) -> None:
    """A new folder is moved; one that exists is filled and stays the same folder."""
    target = tmp_path / "a" / "b"
    if exists:
        target.mkdir(parents=True)
        inode = target.stat().st_ino
    with partial_folder(place_of_draft(target)) as draft:
        (draft / "content").mkdir()
        (draft / "content" / "file").write_text("text")
        place_folder(draft / "content", target)
    assert [path.name for path in target.iterdir()] == ["file"]
    assert not exists or target.stat().st_ino == inode
