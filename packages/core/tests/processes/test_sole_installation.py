"""Two commands that install the same into a cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_INSTALL = """
import sys, time
from pathlib import Path
from constructs_triton_core.processes.wheel_installation import sole_installation
root = Path(sys.argv[1])
entry = root / "runtime"
with sole_installation(root, "runtime", "the runtime") as draft:
    if entry.exists():
        print("found", flush=True)
    else:
        print("installing", flush=True)
        sys.stdin.readline()
        draft.rename(entry)
"""


def _start(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _INSTALL, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_second_command_waits_and_replaces_nothing(tmp_path: Path) -> None:
    """It says what it waits for, and finds what the first one has installed."""
    with _start(tmp_path) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "installing\n"
        with _start(tmp_path) as second:
            assert second.stderr is not None
            note = "waiting for another command, which is installing the runtime\n"
            assert second.stderr.readline() == note
            first.communicate("go on\n")
            printed, _ = second.communicate()
    assert printed == "found\n"


def test_killed_installation_does_not_block_the_next_one(tmp_path: Path) -> None:
    """The next command installs at once, and deletes what the killed one has left."""
    with _start(tmp_path) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "installing\n"
        first.kill()
    with _start(tmp_path) as second:
        printed, notes = second.communicate("go on\n")
    assert (printed, notes) == ("installing\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runtime", "runtime.lock"]
