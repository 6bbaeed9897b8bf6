"""A part of what ``python -m machine_faults`` does: kills, full disks and read-only folders."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from machine_faults.broken_places import FAULTS, Fault, answer_in
from machine_faults.killing import kill
from machine_faults.writers import WRITERS, Writer
from parts import part

BUDGET_MINUTES = 4
SEED = 79
KILLS = 8
_BY_NAME: Mapping[str, Writer] = {writer.name: writer for writer in WRITERS}
#: One for each way to write: a file of the user, a report, archives, a folder, and a cache.
KILLED = ("check --fix", "check --output-file", "pack", "project new", "env build", "capture read")
REFUSED = (*KILLED, "model new", "plan recommender import", "graph")


def _can_mount() -> bool:
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return os.geteuid() == 0 and subprocess.run(command, check=False).returncode == 0


@pytest.mark.parametrize("name", part(KILLED))
def test_killed_command_leaves_whole_files_and_can_be_repeated(name: str, tmp_path: Path) -> None:
    """After SIGKILL each file is as before or as after, and the next run succeeds and cleans up."""
    outcome = kill(_BY_NAME[name], tmp_path, {}, count=KILLS, seed=SEED, repeated_each=2)
    assert outcome.left.total() == KILLS
    assert outcome.problems == []


@pytest.mark.skipif(not _can_mount(), reason="a small disk needs the right to mount")
@pytest.mark.parametrize("fault", FAULTS[:4], ids=lambda fault: fault.name)
@pytest.mark.parametrize("name", part(REFUSED))
def test_full_or_read_only_disk_is_one_sentence(name: str, fault: Fault, tmp_path: Path) -> None:
    """Without room or the right to write, a command says which file, and leaves none of its own."""
    answer = answer_in(fault, _BY_NAME[name], tmp_path, {})
    assert answer.problems == ()
    if answer.code not in _BY_NAME[name].exit_codes:
        assert answer.code == 2
        assert answer.sentence.startswith("error: ")
        assert "no space left on device" in answer.sentence.lower() or (
            "read-only" in answer.sentence.lower()
        )
