"""The supervisor process: its events, and a server that it cannot prepare."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_container import in_loop

from constructs_triton_tools.local.server import supervisor
from constructs_triton_tools.local.server.private_address import SOCKET_NAME, why_unavailable
from constructs_triton_tools.local.server.supervisor_process import SupervisorProcess

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")


REASON = why_unavailable() if sys.platform == "linux" else "seccomp is only in Linux"
#: Binds as Triton's front end does; the exit code is 0 if the socket has become a Unix socket.
FRONT_END = """
import socket, sys
server = socket.socket()
server.bind(("0.0.0.0", 8080))
sys.exit(server.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) != socket.AF_UNIX)
"""
#: Ends its model on SIGTERM, and writes ``late`` some time after the model has ended.
SERVER = """
import signal, subprocess, sys, time
model = subprocess.Popen([sys.executable, "-I", "-c", sys.argv[1]], stdout=subprocess.PIPE)
def stop(*_):
    model.terminate()
    model.wait()
    time.sleep(float(sys.argv[2]))
    open("late", "w").close()
    sys.exit()
model.stdout.readline()
signal.signal(signal.SIGTERM, stop)
open("ready", "w").close()
signal.pause()
"""
MODEL = """
import signal
def finalize(*_):
    open("finalized", "w").close()
    raise SystemExit
signal.signal(signal.SIGTERM, finalize)
print(flush=True)
signal.pause()
"""


def start_request(folder: Path, *argv: str, mounted_models: Path | None = None) -> dict[str, Any]:
    """A request to start ``argv`` in place of the Triton server."""
    return {
        "argv": argv,
        "environment": {},
        "cwd": str(folder),
        "log": str(folder / "server.log"),
        "mounted_models": None if mounted_models is None else str(mounted_models),
        "private_port": None,
        "has_network": True,
        "grace_seconds": 5.0,
    }


async def run_once(folder: Path, request: dict[str, Any]) -> tuple[object, object]:
    """The values of both events of one start."""
    supervisor = await SupervisorProcess.start(f"triton_{folder.name}")
    try:
        async with asyncio.timeout(20):
            await supervisor.send(request)
            return await supervisor.read_event("started"), await supervisor.read_event("ended")
    finally:
        await supervisor.close()


def test_events_contain_process_id_and_exit_code(tmp_path: Path) -> None:
    """The started event has the id of the server's process, the ended event its exit code."""
    request = start_request(tmp_path, "/bin/sh", "-c", "echo $$; exit 3")
    process_id, exit_code = asyncio.run(run_once(tmp_path, request))
    assert exit_code == 3
    assert (tmp_path / "server.log").read_text() == f"{process_id}\n"


@in_loop
async def test_event_of_another_name_is_skipped(tmp_path: Path) -> None:
    """Waiting for the end passes over the started event; an ended supervisor gives ``None``."""
    supervisor = await SupervisorProcess.start(f"triton_{tmp_path.name}")
    await supervisor.send(start_request(tmp_path, "/bin/sh", "-c", "exit 3"))
    assert await supervisor.read_event("ended") == 3
    await supervisor.close()
    assert await supervisor.read_event("ended") is None


def test_failed_preparation_is_in_the_log(tmp_path: Path) -> None:
    """If the models cannot be mounted, the log contains the error, and the exit code is 71."""
    request = start_request(tmp_path, "/bin/true", mounted_models=tmp_path / "missing" / "ml")
    _, exit_code = asyncio.run(run_once(tmp_path, request))
    assert exit_code == 71
    assert (tmp_path / "server.log").read_text().startswith("error: ")


@pytest.mark.skipif(REASON is not None, reason=f"no private addresses here: {REASON}")
def test_server_with_a_private_address_listens_on_a_socket_file(tmp_path: Path) -> None:
    """The supervisor answers the bind of the front end with a Unix socket
    in the server's folder.
    """
    request = {
        **start_request(tmp_path, sys.executable, "-I", "-c", FRONT_END),
        "private_port": 8080,
    }
    _, exit_code = asyncio.run(run_once(tmp_path, request))
    assert (exit_code, (tmp_path / SOCKET_NAME).is_socket()) == (0, True)


def test_server_that_ends_before_its_first_bind_has_no_address() -> None:
    """The supervisor goes on when the server's end of the channel closes without a descriptor."""
    channel, end = socket.socketpair()
    end.close()
    with channel:
        assert supervisor._receive_address({"private_port": 8080, "cwd": "."}, channel, 1) is None


@pytest.mark.parametrize("is_stopped", [True, False])
@in_loop
async def test_folders_of_the_run_are_removed_only_if_the_gateway_was_killed(
    tmp_path: Path, is_stopped: bool
) -> None:
    """A server that is stopped removes its own folder; the run may go on,
    for instance after an update.
    """
    own, run = tmp_path / "own", tmp_path / "run"
    own.mkdir()
    run.mkdir()
    supervisor = await SupervisorProcess.start(f"triton_{tmp_path.name}", own, run)
    await supervisor.send(start_request(tmp_path, "/bin/sleep", "60"))
    await supervisor.read_event("started")
    if is_stopped:
        await supervisor.close()
    else:
        process = supervisor._process
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
    assert (own.exists(), run.exists()) == (False, is_stopped)


@pytest.mark.parametrize(
    ("seconds", "further", "found"),
    [
        ("4", (), {"finalized"}),
        ("0.2", ("--trace-config=triton,file=trace.json",), {"finalized", "late"}),
    ],
)
@in_loop
async def test_server_is_not_waited_for_after_its_models(
    tmp_path: Path, seconds: str, further: tuple[str, ...], found: set[str]
) -> None:
    """Models finalize; a server that then has nothing to do is killed,
    and one that writes traces is not.
    """
    supervisor = await SupervisorProcess.start(f"triton_{tmp_path.name}")
    argv = [sys.executable, "-I", "-c", SERVER, MODEL, seconds, *further]
    await supervisor.send(start_request(tmp_path, *argv))
    async with asyncio.timeout(60):
        while not (tmp_path / "ready").exists():
            await asyncio.sleep(0.01)
    await supervisor.close()
    assert {path.name for path in tmp_path.iterdir()} & {"finalized", "late"} == found
