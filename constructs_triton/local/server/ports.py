"""Ports for servers that are about to start."""

from __future__ import annotations

import socket

__all__ = ["reserve_port"]


def reserve_port() -> socket.socket:
    """A socket whose port nobody is given until it is closed, but which a Triton server can listen on.

    A port that merely was free a moment ago may be another's by the time the server listens, whose answers
    would then pass for this server's. Both sockets ask to reuse addresses, and only one of them listens:
    that the kernel allows, while it gives the port to nobody who asks for any.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation
