"""The private address: a server's bind becomes a Unix socket, and nothing else changes."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from refused_seccomp import without_seccomp

from constructs_triton_tools.local.server import private_address
from constructs_triton_tools.local.server.private_address import (
    SOCKET_NAME,
    PrivateAddress,
    receive_listener,
    why_unavailable,
)

REASON = why_unavailable() if sys.platform == "linux" else "seccomp is only in Linux"
needs_seccomp = pytest.mark.skipif(
    REASON is not None, reason=f"no private addresses here: {REASON}"
)

ACTIONS = Path("/proc/sys/kernel/seccomp/actions_avail")


@pytest.mark.skipif(
    not ACTIONS.is_file() or "user_notif" not in ACTIONS.read_text(),
    reason="the kernel has no notifications",
)
def test_private_addresses_are_available_where_the_kernel_allows_them() -> None:
    """Otherwise an error in the code under test would skip all other tests of it."""
    is_filtered = "Seccomp:\t0" not in Path("/proc/self/status").read_text()
    assert is_filtered or why_unavailable() is None


#: The port that the test programs bind. Nothing listens there: the tests would find it.
PORT = 8080
#: Binds and listens as Triton's front end does, answers one connection, and prints what it found.
PROGRAM = """
import os, runpy, select, socket, sys, threading
channel = socket.socket(fileno=int(sys.argv[2]))
runpy.run_path(sys.argv[1])["report_binds"](channel)
{before}
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
{bind}
server.listen(16)
channel.send(b"listening")
select.select([server], [], [])
connection, _ = socket.socket(fileno=os.dup(server.fileno())).accept()
connection.sendall(connection.recv(100).upper())
"""
BIND = f'server.bind(("0.0.0.0", {PORT}))'


class Child:
    """A program under the filter, and the answers to its binds."""

    def __init__(self, folder: Path, before: str = "", bind: str = BIND) -> None:
        self._channel, theirs = socket.socketpair()
        text = PROGRAM.format(before=before, bind=bind)
        number = str(theirs.fileno())
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", text, private_address.__file__, number],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        listener = receive_listener(self._channel)
        assert listener is not None
        self.address = PrivateAddress(listener, self.process.pid, PORT, folder)

    def answer_until_listening(self) -> None:
        """Answer binds until the program listens or has ended."""
        poll = select.poll()
        poll.register(self.address.fileno(), select.POLLIN)
        poll.register(self._channel, select.POLLIN)
        while self._channel.fileno() not in dict(poll.poll(10_000)):
            self.address.answer()

    def finish(self) -> tuple[int, str, str]:
        """The program's exit code and what it printed."""
        printed, errors = self.process.communicate(timeout=10)
        self.address.close()
        self._channel.close()
        return self.process.returncode, printed, errors


def call(path: Path) -> bytes:
    """What the program answers at this socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        client.sendall(b"ping")
        return client.recv(100)


#: Tries to bind another socket, and prints the error.
REFUSED = """
try:
    socket.socket().bind(("0.0.0.0", {port}))
except PermissionError as error:
    print(error.strerror)
"""
#: Another socket that can be reached over TCP.
REACHED = """
other = socket.create_server({address!r})
print(socket.create_connection(other.getsockname()).getpeername()[0])
other.close()
"""
OF_ANOTHER_PROCESS = f"""
if os.fork() == 0:
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.bind(("0.0.0.0", {PORT}))
    print(other.getsockname())
    sys.exit()
os.wait()
"""
OF_A_THREAD = f"""
thread = threading.Thread(target=server.bind, args=[("0.0.0.0", {PORT})])
thread.start()
thread.join()
"""


@needs_seccomp
@pytest.mark.parametrize(
    ("before", "bind", "printed"),
    [
        # Another port or another host stays a TCP socket.
        *(
            (REACHED.format(address=(host, 0)), BIND, "127.0.0.1\n")
            for host in ("0.0.0.0", "127.0.0.1")
        ),
        (REACHED.format(address=("127.0.0.1", PORT)), BIND, "127.0.0.1\n"),
        # So does the bind of a model's process to the server's address and port.
        (OF_ANOTHER_PROCESS, BIND, f"('0.0.0.0', {PORT})\n"),
        # Another front end, or the same one again, gets an error before and after this one.
        (REFUSED.format(port=PORT + 1), BIND, "Permission denied\n"),
        ("", BIND + REFUSED.format(port=PORT), "Permission denied\n"),
        # The front end is recognized by the process, not by the thread that calls.
        ("", OF_A_THREAD, ""),
        # A signal may interrupt the call after the socket was replaced; the server then binds
        # again.
        ("", f"{BIND}\n{BIND}", ""),
    ],
)
def test_only_the_bind_of_the_front_end_is_replaced(
    tmp_path: Path, before: str, bind: str, printed: str
) -> None:
    """The server answers at the socket file, whatever else it, its threads and its models bind."""
    child = Child(tmp_path, before, bind=bind)
    child.answer_until_listening()
    assert call(tmp_path / SOCKET_NAME) == b"PING"
    assert child.finish() == (0, printed, "")


@needs_seccomp
def test_without_the_right_to_read_the_first_bind_is_the_front_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the address cannot be read, the server's first bind gets the socket
    and the others an error.
    """

    def refuse(*_: object) -> bytes:
        raise PermissionError

    monkeypatch.setattr(PrivateAddress, "_read_address", refuse)
    child = Child(tmp_path, bind=BIND + REFUSED.format(port=0))
    child.answer_until_listening()
    assert call(tmp_path / SOCKET_NAME) == b"PING"
    assert child.finish() == (0, "Permission denied\n", "")


@needs_seccomp
@pytest.mark.parametrize("name", ["short", "long" * 40])
def test_the_servers_bind_becomes_a_unix_socket(tmp_path: Path, name: str) -> None:
    """It answers at a file of any path and on no TCP port, also after a server that has ended."""
    folder = tmp_path / name
    folder.mkdir()
    for _ in range(2):
        child = Child(folder)
        child.answer_until_listening()
        with socket.socket() as client:
            assert client.connect_ex(("127.0.0.1", PORT)) != 0
        descriptor = os.open(folder, os.O_PATH)
        assert call(Path(f"/proc/self/fd/{descriptor}/{SOCKET_NAME}")) == b"PING"
        os.close(descriptor)
        assert child.finish() == (0, "", "")


@needs_seccomp
def test_a_socket_that_cannot_be_created_is_an_error_of_the_bind(tmp_path: Path) -> None:
    """The server's bind fails with the same error, and the server does not listen on a TCP port."""
    child = Child(tmp_path)
    (tmp_path / SOCKET_NAME).touch()
    child.answer_until_listening()
    code, _, errors = child.finish()
    assert code == 1
    assert "Address already in use" in errors


@needs_seccomp
def test_a_server_that_ends_while_it_binds_is_not_an_error(tmp_path: Path) -> None:
    """The answer to a process that has ended is dropped."""
    child = Child(tmp_path)
    poll = select.poll()
    poll.register(child.address.fileno(), select.POLLIN)
    assert poll.poll(10_000)
    child.process.kill()
    child.process.wait()
    child.address.answer()
    child.finish()


def test_no_listener_means_that_the_process_has_ended() -> None:
    """A process that cannot install the filter closes its end of the channel."""
    ours, theirs = socket.socketpair()
    theirs.close()
    assert receive_listener(ours) is None
    ours.close()


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is only in Linux")
@pytest.mark.parametrize("number", [1, 16, 22, 38], ids=["EPERM", "EBUSY", "EINVAL", "ENOSYS"])
def test_why_seccomp_is_not_available(number: int) -> None:
    """The reason is the kernel's own error, whichever it is."""
    program = (
        f"import runpy; print(runpy.run_path({private_address.__file__!r})['why_unavailable']())"
    )
    command = [*without_seccomp(number), "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"seccomp: {os.strerror(number)}\n"


def test_an_unknown_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of the system calls are known for two architectures."""
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    ours, _theirs = socket.socketpair()
    with ours, _theirs, pytest.raises(OSError, match="seccomp: not supported on riscv64"):
        private_address.report_binds(ours)


def decision(program: bytes, call: tuple[int, int, int]) -> int:
    """What the kernel does with a system call: its number, its architecture, its third argument."""
    number, architecture, length = call
    data = {0: number, 4: architecture, 32: length}
    lines = list(struct.iter_unpack("HBBI", program))
    position, word = 0, 0
    while True:
        code, if_equal, otherwise, operand = lines[position]
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            word = data[operand]
        else:
            position += if_equal if word == operand else otherwise
        position += 1


@pytest.mark.parametrize(
    ("machine", "architecture", "bind"), [("x86_64", 0xC000003E, 49), ("aarch64", 0xC00000B7, 200)]
)
def test_the_filter_reports_binds_of_ipv4_addresses(
    monkeypatch: pytest.MonkeyPatch, machine: str, architecture: int, bind: int
) -> None:
    """Any other call, address length or architecture is allowed without a report."""
    monkeypatch.setattr("platform.machine", lambda: machine)
    program = private_address._filter_program()
    report, allow = 0x7FC00000, 0x7FFF0000
    assert decision(program, (bind, architecture, 16)) == report
    assert decision(program, (bind, architecture, 28)) == allow
    assert decision(program, (bind + 1, architecture, 16)) == allow
    assert decision(program, (bind, 0x40000003, 16)) == allow


class Kernel:
    """Answers the system calls of ``_install_filter`` one after the other,
    and counts calls of prctl.
    """

    def __init__(self, *answers: tuple[int, int]) -> None:
        self._answers = list(answers)
        self.prctl_calls = 0

    def syscall(self, *_: object) -> int:
        result, number = self._answers.pop(0)
        ctypes.set_errno(number)
        return result

    def prctl(self, *_: object) -> int:
        self.prctl_calls += 1
        return 0


@pytest.mark.parametrize(
    ("answers", "error", "given_up"),
    [
        ([(7, errno.EACCES)], "", 0),
        ([(-1, errno.EINVAL)], "Invalid argument", 0),
        ([(-1, errno.EACCES), (7, 0)], "", 1),
    ],
    ids=["accepted", "another error", "EACCES"],
)
def test_rights_are_given_up_only_if_the_kernel_asks(
    monkeypatch: pytest.MonkeyPatch, answers: list[tuple[int, int]], error: str, given_up: int
) -> None:
    """Only after EACCES the process sets no_new_privs, once;
    an accepted filter is installed once.
    """
    kernel = Kernel(*answers)
    monkeypatch.setattr(private_address, "_libc", kernel)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    if error:
        with pytest.raises(OSError, match=f"seccomp: {error}"):
            private_address._install_filter()
    else:
        assert private_address._install_filter() == 7
    assert kernel.prctl_calls == given_up
