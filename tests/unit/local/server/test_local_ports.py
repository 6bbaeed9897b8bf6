"""Ports of a run: no other process gets one between choosing it and listening on it."""

from __future__ import annotations

import socket

import pytest

from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.gateway.listener import listen
from constructs_triton.local.server.ports import reserve_port


def _listens(port: int, *, reuses_addresses: bool) -> bool:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuses_addresses)
        try:
            other.bind(("0.0.0.0", port))
        except OSError:
            return False
        other.listen()
    return True


def test_a_reserved_port_is_for_the_server_only() -> None:
    """A server with SO_REUSEADDR can listen on it; no other process gets it until it is released."""
    with reserve_port() as reservation:
        port = reservation.getsockname()[1]
        assert _listens(port, reuses_addresses=True)
        assert not _listens(port, reuses_addresses=False)


def test_two_runs_cannot_take_one_port() -> None:
    """The second fails at once, also while the first is still starting its servers."""
    with listen(0) as listener:
        port = listener.getsockname()[1]
        refused = pytest.raises(
            LocalEndpointError, match=f"--port: .* got {port} .*set --port to a free port"
        )
        with refused, listen(port):
            pass
