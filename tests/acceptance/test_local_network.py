"""What a local run listens on, and what its models can reach, with the real Triton server."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_assembly import AssemblyBuilder, adding_model, below, write_files
from local_network import connects_as_nobody, free_port, listening, processes_in, processes_of
from local_processes import folders, process_ids
from refused_seccomp import without_seccomp
from test_local_endpoints import Caller
from triton_server import needs_server

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.server.namespaces import why_no_network_isolation
from constructs_triton_tools.local.server.private_address import SOCKET_NAME, why_unavailable
from constructs_triton_tools.local.server_check import CheckRun
from triton_model_check.model_repository import ModelRepository

BUDGET_MINUTES = 1
pytestmark = needs_server

NO_ADDRESSES, NO_ISOLATION = why_unavailable(), why_no_network_isolation()
needs_private_addresses = pytest.mark.skipif(
    NO_ADDRESSES is not None, reason=f"no private addresses here: {NO_ADDRESSES}"
)
needs_isolation = pytest.mark.skipif(
    NO_ISOLATION is not None, reason=f"no network isolation here: {NO_ISOLATION}"
)


def connecting_model() -> dict[str, str]:
    """A model that answers 1 if it can connect to the port on 127.0.0.1 that it is given,
    otherwise 0.
    """
    files = adding_model(0)
    connecting = """    def answer(self, x):
        import socket
        with socket.socket() as client:
            x = np.array([client.connect_ex(("127.0.0.1", int(x[0]))) == 0])
"""
    return {
        **files,
        "1/model.py": files["1/model.py"].replace("    def answer(self, x):\n", connecting),
    }


GRPC_PORT = free_port()
FRONT_ENDS = {
    "SAGEMAKER_TRITON_ALLOW_GRPC": "true",
    "SAGEMAKER_TRITON_GRPC_PORT": str(GRPC_PORT),
    "SAGEMAKER_TRITON_ALLOW_METRICS": "true",
    "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--grpc-address=0.0.0.0 --metrics-address=0.0.0.0",
}


def _assembly(directory: Path) -> AssemblyBuilder:
    """Endpoints with and without network isolation, and a multi-model one."""
    builder = AssemblyBuilder(directory)
    connecting = below("m", connecting_model())
    builder.serve("Open", connecting).serve("Isolated", connecting)
    builder.resources["IsolatedModel"]["Properties"]["EnableNetworkIsolation"] = True
    builder.multi_model(
        "ManyModel", {"m.tar.gz": builder.asset("many", below("m", adding_model(5)))}
    )
    builder.endpoint("Many", {"AllTraffic": ("ManyModel", 1)})
    return builder


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """One run of all these endpoints, and two whose servers have gRPC on the same port,
    and metrics.
    """
    builder = _assembly(tmp_path_factory.mktemp("network") / "cdk.out")
    key = builder.asset("front-ends", below("m", adding_model(0)))
    builder.single_model("FrontEndsModel", key, FRONT_ENDS)
    for name in ("FrontEnds", "SameFrontEnds"):
        builder.endpoint(name, {"AllTraffic": ("FrontEndsModel", 1)})
    with LocalEndpoint.from_assembly(builder.write()) as local:
        yield local


@needs_private_addresses
def test_only_the_gateway_listens(local: LocalEndpoint) -> None:
    """Only the gateway's TCP port, and the ports of gRPC in templates, are open, on loopback."""
    assert Caller(local.endpoint_url).add("Many", 1.0, TargetModel="m.tar.gz") == 6
    processes = processes_of(local)
    assert set(process_ids(local)) < processes
    port = int(local.endpoint_url.rpartition(":")[2])
    listened = listening(processes)
    assert {host for host, _ in listened} == {"127.0.0.1"}
    assert {port, GRPC_PORT} < {number for _, number in listened}
    assert len(listened) == 3
    assert all(
        Caller(local.endpoint_url).add(name, 1.0) == 1 for name in ("FrontEnds", "SameFrontEnds")
    )
    assert (
        f"port {GRPC_PORT} is in use on this machine: grpc listens on 127.0.0.1:" in local.messages
    )


@needs_private_addresses
def test_another_user_cannot_connect_to_a_server(local: LocalEndpoint) -> None:
    """The socket of each server is in a folder that only the user of the run can enter."""
    for folder in folders(local):
        assert (folder / SOCKET_NAME).is_socket()
        assert folder.stat().st_mode & 0o077 == 0
        assert os.geteuid() != 0 or not connects_as_nobody(folder / SOCKET_NAME)


@needs_isolation
@needs_private_addresses
def test_an_isolated_endpoint_has_no_network_and_others_have_one(local: LocalEndpoint) -> None:
    """With EnableNetworkIsolation, a model cannot connect to anything outside of its server."""
    caller = Caller(local.endpoint_url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = float(listener.getsockname()[1])
        assert caller.add("Open", port) == 1
        assert caller.add("Isolated", port) == 0


def test_the_server_of_a_check_has_no_port(tmp_path: Path) -> None:
    """`check --server` connects to its server through a Unix socket."""
    (tmp_path / "private").mkdir()
    models = write_files(tmp_path / "models", below("m", adding_model(1)))
    repository = ModelRepository.from_directory(models)
    with CheckRun.prepare(repository, tmp_path / "private").server() as server:
        answer = server.load("m", 30)
        processes = processes_in(server.folder)
        assert (answer.outcome, len(processes) > 1, listening(processes)) == ("loads", True, set())


class _WithoutSeccomp(LocalEndpoint):
    """A run on a platform that has no private addresses."""

    def _command(self) -> list[str]:
        return [*without_seccomp(), *super()._command()[1:]]


def test_without_private_addresses_a_run_needs_permission(tmp_path: Path) -> None:
    """The error names the kernel's reason and the option that accepts the risk."""
    assembly = _assembly(tmp_path / "cdk.out").write()
    expected = "no private addresses .*Function not implemented.* --allow-open-ports"
    with pytest.raises(LocalEndpointError, match=expected), _WithoutSeccomp.from_assembly(assembly):
        pass


def test_open_ports_work_where_they_are_allowed(tmp_path: Path) -> None:
    """Every server has an open port, each endpoint answers, and the run says once what is open."""
    assembly = _assembly(tmp_path / "cdk.out").write()
    with _WithoutSeccomp.from_assembly(assembly, allow_open_ports=True) as local:
        caller = Caller(local.endpoint_url)
        assert caller.add("Open", float(local.endpoint_url.rpartition(":")[2])) == 1
        assert caller.add("Many", 1.0, TargetModel="m.tar.gz") == 6
        hosts = [host for host, _ in listening(processes_of(local))]
        assert sorted(hosts) == ["0.0.0.0"] * len(process_ids(local)) + ["127.0.0.1"]
        assert local.messages.count("listens on all network interfaces") == 1
        assert (
            "Isolated/AllTraffic: network isolation does not work on this machine" in local.messages
        )
