"""Gives a Triton server a private address: a Unix socket in place of its TCP port.

Triton's SageMaker front end has no option for its address. It binds 0.0.0.0, so everyone who
reaches the machine could load models into it. Here the server starts under a seccomp filter that
reports every bind(2) of an IPv4 address to the supervisor. For the front end's bind, the supervisor
replaces the server's socket with a Unix socket in a folder that only this user can enter. The
server gets an error for any other port on 0.0.0.0. The binds of its models' processes and those on
other addresses go through unchanged.

Needs Linux 5.9 and no privileges.

Sources: seccomp(2), seccomp_unotify(2), and the kernel's headers linux/seccomp.h, linux/filter.h,
linux/audit.h and asm/unistd.h for each number.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import select
import socket
import struct
from fcntl import ioctl
from pathlib import Path
from typing import NamedTuple

from constructs_triton_core.processes.children import forked, python_command, run_child
from constructs_triton_core.untrusted.drafts import temporary_folder

#: The socket's file name in the server's folder.
SOCKET_NAME = "front_end.sock"
#: By machine: AUDIT_ARCH, and the system call numbers of seccomp and bind (asm/unistd.h).
_SYSTEM_CALLS = {"x86_64": (0xC000003E, 317, 49), "aarch64": (0xC00000B7, 277, 200)}
# struct sockaddr_in: its size, and its family in the byte order of the machine.
_SOCKADDR_IN_BYTES = 16
_AF_INET = struct.pack("=H", socket.AF_INET)

# linux/filter.h and linux/bpf_common.h: load a word, jump if equal, return.
_LOAD = 0x20
_JUMP_IF_EQUAL = 0x15
_RETURN = 0x06
# Offsets in struct seccomp_data: the call's number, its architecture, the low half of its third
# argument.
_CALL_NUMBER = 0
_ARCHITECTURE = 4
_ADDRESS_LENGTH = 32
# linux/seccomp.h
_SET_MODE_FILTER = 1
_NEW_LISTENER = 8
_REPORT = 0x7FC00000
_ALLOW = 0x7FFF0000
_CONTINUE = 1
_REPLACE_DESCRIPTOR = 1
_RECEIVE = 0xC0502100
_SEND = 0xC0182101
_IS_VALID = 0x40082102
_ADD_DESCRIPTOR = 0x40182103
_NOTIFICATION_BYTES = 80
# linux/prctl.h
_PR_SET_NO_NEW_PRIVS = 38
_PROBE_SECONDS = 10.0
_PROBE = "from constructs_triton_tools.local.server.private_address import probe; sys.exit(probe())"
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


# In the server's process, before it becomes the server.


def report_binds(channel: socket.socket) -> None:
    """Report each bind of an IPv4 address, here and in children, to who receives from ``channel``.

    Raises:
        OSError: the platform does not support it.
    """
    listener = _install_filter()
    socket.send_fds(channel, [b"listener"], [listener])
    os.close(listener)


def _install_filter() -> int:
    program = _filter_program()
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))  # struct sock_fprog
    listener = _seccomp(header)
    if listener < 0 and ctypes.get_errno() == errno.EACCES:
        # Without CAP_SYS_ADMIN the kernel asks for this: the process gives up gaining rights, by
        # sudo say.
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        listener = _seccomp(header)
    if listener < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
    return listener


def _seccomp(header: bytes) -> int:
    _, seccomp, _ = _system_calls()
    return int(_libc.syscall(seccomp, _SET_MODE_FILTER, _NEW_LISTENER, header))


def _filter_program() -> bytes:
    """BPF: report bind with a ``sockaddr_in``, allow everything else."""
    architecture, _, bind = _system_calls()
    instructions = (  # code, lines to skip if equal, lines to skip otherwise, operand
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 0, 5, architecture),
        (_LOAD, 0, 0, _CALL_NUMBER),
        (_JUMP_IF_EQUAL, 0, 3, bind),
        (_LOAD, 0, 0, _ADDRESS_LENGTH),
        (_JUMP_IF_EQUAL, 0, 1, _SOCKADDR_IN_BYTES),
        (_RETURN, 0, 0, _REPORT),
        (_RETURN, 0, 0, _ALLOW),
    )
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def _system_calls() -> tuple[int, int, int]:
    machine = platform.machine()
    if machine not in _SYSTEM_CALLS:
        raise OSError(errno.ENOSYS, f"seccomp: not supported on {machine}")
    return _SYSTEM_CALLS[machine]


# In the supervisor.


def receive_listener(channel: socket.socket) -> int | None:
    """The descriptor that ``report_binds`` sent; ``None`` when the process ended before."""
    _, descriptors, _, _ = socket.recv_fds(channel, 16, 1)
    return descriptors[0] if descriptors else None


class _Bind(NamedTuple):
    """A reported bind: the notification's number, the calling thread, and the call's arguments."""

    cookie: int
    thread: int
    descriptor: int
    address: int
    length: int


class PrivateAddress:
    """Answers the reported binds of one server process.

    ``listener`` is the descriptor from ``receive_listener``, ``process`` the server's id, ``port``
    the port that its front end binds, and ``folder`` a folder that only this user can enter.
    """

    def __init__(self, listener: int, process: int, port: int, folder: Path) -> None:
        self._listener = listener
        self._process = process
        self._port = port
        # A path of any length: the address of a Unix socket has room for 107 bytes.
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._replaced: tuple[int, int] | None = None
        (folder / SOCKET_NAME).unlink(missing_ok=True)  # of the server that ran before

    def fileno(self) -> int:
        """The descriptor to poll; call ``answer`` when it is readable."""
        return self._listener

    def close(self) -> None:
        """Stop answering. A bind that is reported afterwards fails with ``ENOSYS``."""
        os.close(self._listener)
        os.close(self._folder)

    def answer(self) -> None:
        """Answer one reported bind."""
        # Raised by the ioctls and by /proc when the caller has ended or a signal has interrupted
        # its call.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            bind = self._receive()
            error, flags = self._decide(bind)
            ioctl(self._listener, _SEND, struct.pack("QqiI", bind.cookie, 0, -error, flags))

    def _decide(self, bind: _Bind) -> tuple[int, int]:
        """The error number and the flags of the answer."""
        caller = (bind.thread, bind.descriptor)
        if caller == self._replaced:
            return (
                0,
                0,
            )  # a signal had interrupted the call after the replacement, and the server repeats it
        port = self._public_port(bind)
        if not port:
            return 0, _CONTINUE
        if self._replaced is not None or port != self._port:
            return errno.EACCES, 0  # another front end, which would listen on all interfaces
        error = self._replace_socket(bind)
        self._replaced = None if error else caller
        return error, 0

    def _receive(self) -> _Bind:
        notification = bytearray(_NOTIFICATION_BYTES)  # struct seccomp_notif
        ioctl(self._listener, _RECEIVE, notification)
        cookie, thread = struct.unpack_from("QI", notification)
        descriptor, address, length = struct.unpack_from("QQQ", notification, 32)
        return _Bind(cookie, thread, descriptor & 0xFFFFFFFF, address, length)

    def _public_port(self, bind: _Bind) -> int:
        """The port that the server itself binds on all interfaces; 0 for every other bind."""
        if _process_of(bind.thread) != self._process:
            return 0
        try:
            address = self._read_address(bind)
        except PermissionError:
            return (
                self._port
            )  # other front ends are off by default, and get an error if they are on
        family, port, host = struct.unpack_from("=2s2s4s", address)
        return int.from_bytes(port, "big") if (family, host) == (_AF_INET, bytes(4)) else 0

    def _read_address(self, bind: _Bind) -> bytes:
        with Path(f"/proc/{bind.thread}/mem").open("rb", buffering=0) as memory:
            memory.seek(bind.address)
            address = memory.read(bind.length)
        # Otherwise the thread has ended, and another one may have its number.
        ioctl(self._listener, _IS_VALID, struct.pack("Q", bind.cookie))
        return address

    def _replace_socket(self, bind: _Bind) -> int:
        """Put a Unix socket in the place of the server's; returns the error number, 0 for none."""
        with socket.socket(socket.AF_UNIX) as private:
            private.setblocking(False)  # as the server has set its own
            try:
                private.bind(f"/proc/self/fd/{self._folder}/{SOCKET_NAME}")
            except OSError as error:
                return error.errno or errno.EACCES  # the server prints it and ends
            replacement = struct.pack(
                "QIIII",
                bind.cookie,
                _REPLACE_DESCRIPTOR,
                private.fileno(),
                bind.descriptor,
                os.O_CLOEXEC,
            )
            ioctl(self._listener, _ADD_DESCRIPTOR, replacement)
        return 0


def _process_of(thread: int) -> int:
    for line in (
        Path(f"/proc/{thread}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    ):
        if line.startswith("Tgid:"):
            return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, f"/proc/{thread}/status: has no Tgid")


# The check whether it works, in a separate process.


def why_unavailable() -> str | None:
    """Return why private addresses do not work on this machine, or ``None`` if they work.

    A separate process tries it.
    """
    try:
        done = run_child(python_command(_PROBE), seconds=_PROBE_SECONDS)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")


def probe() -> int:
    """Return 0 if a bind of another process becomes a Unix socket."""
    ours, theirs = socket.socketpair()
    child = forked(lambda: _probe_child(theirs))
    theirs.close()
    listener = receive_listener(ours)
    if listener is not None:
        with temporary_folder() as folder:
            _answer_until_end(PrivateAddress(listener, child, 1, folder), ours)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _probe_child(channel: socket.socket) -> int:
    try:
        report_binds(channel)
        with socket.socket() as front_end:
            front_end.bind(("0.0.0.0", 1))
            is_private = front_end.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_UNIX
    except OSError as error:
        os.write(2, f"{error.strerror}\n".encode())
        return 1
    return 0 if is_private else 2


def _answer_until_end(address: PrivateAddress, channel: socket.socket) -> None:
    """Answer until the process at the other end of ``channel`` has ended."""
    poll = select.poll()
    poll.register(address.fileno(), select.POLLIN)
    poll.register(channel, select.POLLIN)
    while channel.fileno() not in (ready := dict(poll.poll())):
        if ready[address.fileno()] & select.POLLIN:
            address.answer()
    address.close()
