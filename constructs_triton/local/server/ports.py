"""Ports for servers that are about to start."""

from __future__ import annotations

import socket

__all__ = ["reserve_port"]


def reserve_port() -> socket.socket:
    """Return a socket that reserves a port for a Triton server until the socket is closed.

    Another process could take a port that was only found to be free, and its answers would look like the
    server's. Here both sockets set SO_REUSEADDR and only the server listens. The kernel allows this, and
    does not give the port to a process that asks for any free port.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation
