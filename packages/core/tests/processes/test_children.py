"""Child processes: their import path and output, and that they end with this process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from constructs_triton_core.processes.async_children import start_child
from constructs_triton_core.processes.children import (
    PIPE,
    STDOUT,
    Child,
    foreign_environment,
    forked,
    import_path,
    own_environment,
    python_command,
    run_child,
)

SHELL = ["/bin/sh", "-c"]
# A parent that starts a child of a child, prints their IDs, and waits. A tool gives its ID late:
# until its parent has written the ID to the keeper, nothing ends it with a parent that is killed.
PARENT = """
import asyncio, sys, time
from constructs_triton_core.processes.async_children import start_child
from constructs_triton_core.processes.children import PIPE, Child, run_child
command = ["/bin/sh", "-c", "trap '' HUP; sleep 100 & echo $$ $!; wait"]
if sys.argv[1] == "Child":
    print(Child(command, environment={}, stdout=PIPE).stdout.readline().decode(), flush=True)
    time.sleep(100)
elif sys.argv[1] == "run_child":
    run_child([*command[:2], f"sleep 1; echo $$ > {sys.argv[2]}; sleep 100"], seconds=None)
else:
    async def start():
        child = await start_child(command, environment={}, stdout=PIPE)
        print((await child.stdout.readline()).decode(), flush=True)
        await asyncio.sleep(100)
    asyncio.run(start())
"""


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int, seconds: float = 8.0) -> bool:
    """Wait until a process has ended."""
    deadline = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("way", ["Child", "start_child"])
def test_child_ends_with_its_parent(way: str, number: signal.Signals) -> None:
    """When the parent is killed, its child and the child of that child end."""
    command = [sys.executable, "-c", PARENT, way]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert all(map(is_running, pids))
        parent.send_signal(number)
    assert len(pids) == 2
    assert all(map(ends, pids))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_tool_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    """A program that runs to its end is ended by Ctrl-C, and when the parent is killed."""
    place = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, "run_child", place], stderr=PIPE
    ) as parent:
        deadline = time.monotonic() + 20
        while not (place.exists() and place.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        parent.send_signal(number)
        parent.communicate()
    assert ends(int(place.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_stays_after_an_ordinary_end() -> None:
    """The keeper of a child ends with the child, not with this process."""

    def children() -> set[str]:
        return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    before = children()
    run_child([*SHELL, "true"], seconds=5)
    assert asyncio.run(output_of_async_child()) == b"here\n"
    assert children() == before


async def output_of_async_child() -> bytes:
    """What a child of an event loop prints."""
    child = await start_child([*SHELL, "echo here; echo there >&2"], environment={}, stdout=PIPE)
    output, _ = await child.communicate()
    await asyncio.sleep(0)  # the callback of its end
    return output


def test_output_is_captured(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing that a program prints reaches the terminal,
    and bytes that are not UTF-8 are replaced.
    """
    code = r"printf 'out\377'; printf err >&2; exit 3"
    done = run_child([*SHELL, code], seconds=5)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\ufffd", "err")
    assert run_child([*SHELL, code], seconds=5, stderr=STDOUT).stdout == "out\ufffderr"
    with Child[bytes]([*SHELL, code], environment=own_environment()) as child:
        child.wait()
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_time_limit_ends_a_program_and_what_it_started(tmp_path: Path) -> None:
    """A program that takes too long is an error, also if it ignores the first signal."""
    place = tmp_path / "pid"
    with pytest.raises(TimeoutError, match="sh did not finish within 1 s"):
        run_child([*SHELL, f"sleep 100 & echo $! > {place}; wait"], seconds=1)
    assert ends(int(place.read_text()))


def test_program_that_does_not_exist_is_an_error() -> None:
    """The caller gets the error of the system, and no keeper stays."""
    with pytest.raises(FileNotFoundError):
        run_child(["/does/not/exist"], seconds=5)
    with pytest.raises(FileNotFoundError):
        asyncio.run(start_child(["/does/not/exist"], environment={}))


@pytest.mark.parametrize("variable", ["", "PYTHONPATH"])
def test_modules_of_the_current_folder_are_not_imported(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the folder of the user's data takes the place of no module,
    even if the caller has it.
    """
    for name in ("json", "yaml", "encodings", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), ".", *sys.path])
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
    program = "import json, yaml; print(json.__file__, sys.argv[1:])"
    for environment in (foreign_environment(), own_environment()):
        done = run_child(python_command(program, "a", "b"), seconds=60, environment=environment)
        assert done.stdout.endswith("['a', 'b']\n"), done.stderr
    assert not (tmp_path / "ran").exists()


def test_package_in_the_current_folder_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout of the project, the current folder is where this package is."""
    monkeypatch.chdir(Path(__file__).parents[4])
    monkeypatch.setattr(sys, "path", ["", *(each for each in sys.path if each != str(Path.cwd()))])
    program = "import constructs_triton_core.processes.children as c; print(c.__file__)"
    assert run_child(python_command(program), seconds=60).stdout.startswith(str(Path.cwd()))


def test_package_that_is_installed_from_the_current_folder_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is imported already makes no difference, so that a program of a clone runs from
    its root.
    """
    root, site_packages = tmp_path / "clone", tmp_path / "site-packages"
    root.mkdir()
    site_packages.mkdir()
    (root / "found_in_clone.py").touch()
    (site_packages / "clone.pth").write_text(f"import os\n{root}\n")
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site_packages), str(root)])
    program = "import found_in_clone; print(found_in_clone.__file__)"
    done = run_child(python_command(program), seconds=60)
    assert done.stdout == f"{root / 'found_in_clone.py'}\n", done.stderr


def test_deleted_current_folder_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import path of a child then has only absolute paths,
    which do not need the current folder.
    """
    monkeypatch.setattr(sys, "path", ["", ".", "lib", *sys.path])
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert not {"", ".", "lib"} & set(import_path())
    done = run_child(python_command("import constructs_triton_core; print(1)"), seconds=60, cwd="/")
    assert done.stdout == "1\n"


def test_fork_returns_the_exit_code_of_the_function() -> None:
    """The copy ends with the function's result, or with 1 after an exception."""
    program = """
import os
from constructs_triton_core.processes.children import forked
for function in (lambda: 5, lambda: 1 / 0):
    print(os.waitstatus_to_exitcode(os.waitpid(forked(function), 0)[1]), flush=True)
"""
    done = run_child(python_command(program), seconds=30)
    assert done.stdout == "5\n1\n"
    assert "ZeroDivisionError" in done.stderr
    assert forked.__module__ == "constructs_triton_core.processes.children"
