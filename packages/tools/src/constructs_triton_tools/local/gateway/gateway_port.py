"""The port of the gateway."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from constructs_triton_core.errors import LocalEndpointError

HOST = "127.0.0.1"


@contextmanager
def listen(port: int) -> Iterator[socket.socket]:
    """Give a socket that listens on a port of this machine; 0 means any free port."""
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()  # two runs could both bind a port, but only one can listen
        except OSError as error:
            raise LocalEndpointError(
                f"--port: cannot listen on {HOST}, got {port} ({error.strerror}); "
                "set --port to a free port, or to 0 for any free port"
            ) from error
        yield listener
    finally:
        listener.close()
