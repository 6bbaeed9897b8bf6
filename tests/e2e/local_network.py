"""Looks at what the processes of a local run listen on,
and calls it as another user of the machine.
"""

from __future__ import annotations

import ctypes
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from constructs_triton_tools.local import LocalEndpoint

_LISTEN = "0A"
_NOBODY = 65534


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def processes_of(local: LocalEndpoint) -> set[int]:
    """The gateway's process and all that it has started, directly or not."""
    assert local.process is not None
    parents = {int(path.name): _parent(path) for path in Path("/proc").glob("[0-9]*")}
    found, before = {local.process.pid}, set[int]()
    while found != before:
        before = set(found)
        found |= {process for process, parent in parents.items() if parent in found}
    return found


def processes_in(folder: Path) -> set[int]:
    """The processes whose working directory is this folder."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            if (path / "cwd").readlink() == folder:
                found.add(int(path.name))
    return found


def listening(processes: set[int]) -> set[tuple[str, int]]:
    """The TCP addresses on which these processes listen,
    in whichever network namespace they are.
    """
    return {address for process in processes for address in _listening(Path(f"/proc/{process}"))}


def _listening(process: Path) -> set[tuple[str, int]]:
    try:
        inodes = {_inode(path) for path in (process / "fd").iterdir()}
        lines = [
            line.split() for name in ("tcp", "tcp6") for line in _table(process / "net" / name)
        ]
    except OSError:  # the process has ended
        return set()
    return {_address(line[1]) for line in lines if line[3] == _LISTEN and line[9] in inodes}


def _table(path: Path) -> list[str]:
    return path.read_text().splitlines()[1:] if path.exists() else []


def _inode(path: Path) -> str:
    try:
        return str(path.readlink()).removeprefix("socket:[").removesuffix("]")
    except OSError:
        return ""


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    words = [bytes.fromhex(host[start : start + 8])[::-1] for start in range(0, len(host), 8)]
    return _host(b"".join(words)), int(port, 16)


def _host(packed: bytes) -> str:
    if len(packed) == 4:
        return str(IPv4Address(packed))
    host = IPv6Address(packed)
    return str(host.ipv4_mapped or host)


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def connects_as_nobody(path: Path) -> bool:
    """Whether another user of the machine can connect to this Unix socket. Only root can ask."""
    return _as_nobody(lambda: _connects(path))


def _connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except PermissionError:
            return False
        return True


def _as_nobody(ask: Callable[[], bool]) -> bool:
    """The answer of a thread that has the file permissions of user ``nobody``;
    no other thread changes.
    """
    answers: list[bool] = []

    def run() -> None:
        libc = ctypes.CDLL(None)
        libc.setfsgid(_NOBODY)
        libc.setfsuid(_NOBODY)
        assert libc.setfsuid(-1) == _NOBODY
        answers.append(ask())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return answers[0]
