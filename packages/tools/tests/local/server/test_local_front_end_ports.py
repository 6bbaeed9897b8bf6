"""Ports of a run: no two servers get the same one,
and no other process gets one before it is used.
"""

from __future__ import annotations

import socket

import pytest
from local_network import free_port

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.gateway.gateway_port import listen
from constructs_triton_tools.local.server.front_end_ports import (
    FrontEndPorts,
    _wanted,
    reserve_port,
)

OFF = ("--allow-http=false", "--allow-grpc=false")


def test_second_server_gets_another_port() -> None:
    """The first server has the template's port. A server that starts again keeps its port."""
    ports, wanted, reports = FrontEndPorts(), free_port(), list[str]()
    arguments = [*OFF, "--allow-grpc=true", f"--grpc-port={wanted}"]
    assert ports.moved("a", arguments, reports.append) == []
    (moved,) = ports.moved("b", arguments, reports.append)
    assert (moved.name, moved.wanted, moved.port != wanted) == ("grpc", wanted, True)
    assert [ports.moved(name, arguments, reports.append) for name in ("a", "b")] == [[], [moved]]
    assert reports == [
        f"b: port {wanted} is in use on this machine: grpc listens on 127.0.0.1:{moved.port}"
    ]


def test_port_of_another_program_is_not_used() -> None:
    """The server would not start if another program listened on its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        arguments = [*OFF, "--allow-grpc=1", f"--grpc-port={taken}"]
        (found,) = FrontEndPorts().moved("a", arguments, lambda _: None)
    assert (found.name, found.wanted, found.port != taken) == ("grpc", taken, True)


@pytest.mark.parametrize("port", [["--grpc-port=8001", "--grpc-port=x"], ["--grpc-port=0"]])
def test_invalid_port_is_left_to_the_server(port: list[str]) -> None:
    """The server refuses a port that is not a number; the last of several flags counts."""
    assert list(_wanted([*OFF, "--allow-grpc=true", *port])) == []


def test_only_front_ends_that_are_on_have_a_port() -> None:
    """HTTP is off unless the additional arguments turn it on; metrics have a socket."""
    assert list(_wanted([*OFF, "--allow-metrics=true"])) == []
    assert list(_wanted([*OFF, "--allow-http=true"])) == [("http", 8000)]


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
    """A server with SO_REUSEADDR can listen on it;
    no other process gets it until it is released.
    """
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
