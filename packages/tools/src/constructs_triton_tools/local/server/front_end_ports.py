"""Addresses of the other front ends of a server: ports for gRPC and HTTP, a Unix socket for
metrics.

In AWS each container has its own network, so all can have Triton's default ports. On one machine
only the first server can have a port, and the next one would not start. Metrics are never called
from outside, so they need no port.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from triton_model_check.artifacts.container_metrics import SOCKET_VARIABLE

#: Where the server's models read its metrics, relative to its working directory: a Unix address has
#: room for 107 bytes.
_METRICS_SOCKET = "metrics.sock"
#: Triton's front ends besides SageMaker's, with the port of each (tritonserver --help).
_DEFAULT_PORTS = {"http": 8000, "grpc": 8001}
_HIGHEST_PORT = 65535


class FrontEnd(NamedTuple):
    """A front end that is turned on: its name in Triton's options, the template's port,
    and the one used.
    """

    name: str
    wanted: int
    port: int


class FrontEndPorts:
    """The ports of all servers of a run. A server that starts again keeps its ports."""

    def __init__(self) -> None:
        self._ports: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def moved(
        self, server: str, arguments: Sequence[str], report: Callable[[str], None]
    ) -> list[FrontEnd]:
        """Return the front ends whose port is in use, each with a free port,
        and report them once.
        """
        with self._lock:
            found = [self._front_end(server, *wanted, report) for wanted in _wanted(arguments)]
        return [port for port in found if port.port != port.wanted]

    def port_of(self, server: str, name: str, arguments: Sequence[str]) -> int | None:
        """Return the port of a front end after ``moved``; ``None`` if it is not turned on."""
        return self._ports.get((server, name)) or dict(_wanted(arguments)).get(name)

    @staticmethod
    def environment(moved: Sequence[FrontEnd]) -> dict[str, str]:
        """Return the variables from which a server's models know where its front ends listen."""
        ports = {f"SAGEMAKER_TRITON_{port.name.upper()}_PORT": str(port.port) for port in moved}
        return {**ports, SOCKET_VARIABLE: _METRICS_SOCKET}

    def _front_end(
        self, server: str, name: str, wanted: int, report: Callable[[str], None]
    ) -> FrontEnd:
        port = self._ports.get((server, name))
        if port is None:
            is_taken = wanted in self._ports.values() or not _is_free(wanted)
            port = self._ports[server, name] = _free_port() if is_taken else wanted
            if is_taken:
                report(
                    f"{server}: port {wanted} is in use on this machine: "
                    f"{name} listens on 127.0.0.1:{port}"
                )
        return FrontEnd(name, wanted, port)


def private_addresses(folder: Path) -> tuple[str, ...]:
    """Return the flags of a server that runs in ``folder``, whose front ends would be open to the
    network.

    Removes the socket of a server that ran before.
    """
    (folder / _METRICS_SOCKET).unlink(missing_ok=True)
    loopback = (f"--{name}-address=127.0.0.1" for name in _DEFAULT_PORTS)
    return (*loopback, f"--metrics-address=unix:{_METRICS_SOCKET}")


def _wanted(arguments: Sequence[str]) -> Iterator[tuple[str, int]]:
    for name, default in _DEFAULT_PORTS.items():
        is_on = _last(arguments, f"--allow-{name}=", "true").lower() in ("true", "1")
        port = _last(arguments, f"--{name}-port=", str(default))
        if (
            is_on and port.isdecimal() and 0 < int(port) <= _HIGHEST_PORT
        ):  # the server refuses other ports
            yield name, int(port)


def _last(arguments: Sequence[str], flag: str, default: str) -> str:
    """Return the value of a flag. The server uses the last of several."""
    return next(
        (word.removeprefix(flag) for word in reversed(arguments) if word.startswith(flag)), default
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
        return True


def _free_port() -> int:
    with closing(reserve_port()) as reservation:
        return int(reservation.getsockname()[1])


def reserve_port() -> socket.socket:
    """Return a socket that reserves a port for a Triton server until the socket is closed.

    Another process could take a port that was only found to be free, and its answers would look
    like the server's. Here both sockets set SO_REUSEADDR and only the server listens. The kernel
    allows this, and does not give the port to a process that asks for any free port.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation
