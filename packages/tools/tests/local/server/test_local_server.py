"""What a server is started with, without starting it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_container import SETTINGS, in_loop, write_archive
from local_network import free_port

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.server.front_end_ports import FrontEndPorts
from constructs_triton_tools.local.server.server import ServerSettings, TritonServer
from constructs_triton_tools.local.sources.specs import ContainerSpec


def request_of(
    folder: Path, settings: ServerSettings = SETTINGS, label: str = "e/v", **container: Any
) -> dict[str, Any]:
    """The start request that the supervisor would receive."""
    spec = ContainerSpec("m", "", "s3://bucket/m.tar.gz", archive=Path("m.tar.gz"), **container)
    server = TritonServer(label, spec, settings)
    server.directory = folder
    (server.container_directory / "model" / "m").mkdir(parents=True, exist_ok=True)
    return dict(server._request())


def test_a_server_binds_the_port_of_the_container(tmp_path: Path) -> None:
    """With a private address all servers can have 8080, whatever the template says."""
    request = request_of(tmp_path, environment={"SAGEMAKER_BIND_TO_PORT": "9000"})
    assert request["private_port"] == 8080
    assert "--sagemaker-port=8080" in request["argv"]
    assert request["environment"]["SAGEMAKER_BIND_TO_PORT"] == "8080"


def test_other_front_ends_get_a_private_address_whatever_the_template_adds(tmp_path: Path) -> None:
    """The server takes the last of several equal flags, and the run's own come last."""
    arguments = (
        "--grpc-address=0.0.0.0 --metrics-address=0.0.0.0 --allow-http=true --http-address=0.0.0.0"
    )
    words = request_of(tmp_path, environment={"SAGEMAKER_TRITON_ADDITIONAL_ARGS": arguments})[
        "argv"
    ]
    own = {"http": "127.0.0.1", "grpc": "127.0.0.1", "metrics": "unix:metrics.sock"}
    for name, address in own.items():
        flags = [word for word in words if word.startswith(f"--{name}-address=")]
        assert flags == [f"--{name}-address=0.0.0.0", f"--{name}-address={address}"]


def test_two_servers_of_a_run_have_different_grpc_ports(tmp_path: Path) -> None:
    """In AWS each container has its own network; here the second server gets
    another port and is reported.
    """
    reports: list[str] = []
    settings = replace(SETTINGS, report=reports.append, front_end_ports=FrontEndPorts())
    environment = {
        "SAGEMAKER_TRITON_ALLOW_GRPC": "true",
        "SAGEMAKER_TRITON_GRPC_PORT": str(free_port()),
    }
    for label in ("a/v", "b/v", "isolated/v"):
        is_isolated = label == "isolated/v"
        request = request_of(
            tmp_path / label, settings, label, environment=environment, is_isolated=is_isolated
        )
        flags = [word for word in request["argv"] if word.startswith("--grpc-port=")]
        assert (len(flags) == 2) == (label == "b/v")
        port = request["environment"]["SAGEMAKER_TRITON_GRPC_PORT"]
        assert flags[-1] == f"--grpc-port={port}"
    (line,) = (line for line in reports if "grpc" in line)
    assert line.startswith(
        f"b/v: port {environment['SAGEMAKER_TRITON_GRPC_PORT']} is in use on this machine"
    )


def test_open_ports_are_not_reported(tmp_path: Path) -> None:
    """Without private addresses the supervisor starts the server without a filter."""
    settings = replace(SETTINGS, has_private_addresses=False)
    assert request_of(tmp_path, settings)["private_port"] is None


@pytest.mark.parametrize("is_isolated", [True, False])
@pytest.mark.parametrize("is_available", [True, False])
def test_only_an_isolated_server_has_no_network(
    tmp_path: Path, is_isolated: bool, is_available: bool
) -> None:
    """If the machine does not support isolation, the server has a network,
    and the run reports it.
    """
    settings = replace(SETTINGS, has_network_isolation=is_available)
    request = request_of(tmp_path, settings, is_isolated=is_isolated)
    assert request["has_network"] == (not (is_isolated and is_available))


def spec_of(archive: Path) -> ContainerSpec:
    return ContainerSpec("m", "", "s3://bucket/m.tar.gz", archive=archive)


def test_a_server_that_never_started_can_be_stopped() -> None:
    """If another server of the run fails first, this one has no process and no folder to delete."""
    asyncio.run(TritonServer("e/v", spec_of(Path("m.tar.gz")), SETTINGS).stop())


def test_a_model_whose_backend_is_missing_is_an_error_before_the_start(tmp_path: Path) -> None:
    """The message names the model and the backend; the server is not started."""
    (tmp_path / "installed" / "python").mkdir(parents=True)
    (tmp_path / "installed" / "python" / "triton_python_backend_stub").touch()
    write_archive(tmp_path / "m.tar.gz", {"m/config.pbtxt": b'backend: "dali"'})
    installation = replace(SETTINGS.installation, backends=tmp_path / "installed")
    settings = replace(SETTINGS, installation=installation)
    server = TritonServer("e/v", spec_of(tmp_path / "m.tar.gz"), settings)
    server.directory = tmp_path / "run"
    server.directory.mkdir()
    with pytest.raises(LocalEndpointError, match="m: needs the backend 'dali'"):
        server._prepare()


class EndingSupervisor:
    """Takes the place of the supervisor process: the server ends at once."""

    def __init__(self) -> None:
        self.requests: list[Mapping[str, Any]] = []

    async def send(self, request: Mapping[str, Any]) -> None:
        self.requests.append(request)

    async def read_event(self, name: str) -> object:
        return {"started": 1, "ended": 1}[name]

    async def close(self) -> None:
        pass


@in_loop
async def test_a_server_on_an_open_port_gets_one_that_is_reserved(tmp_path: Path) -> None:
    """Each start reserves a free port, and the server binds it."""
    settings = replace(SETTINGS, has_private_addresses=False)
    server = TritonServer("e/v", spec_of(tmp_path / "m.tar.gz"), settings)
    supervisor = EndingSupervisor()
    server.directory = tmp_path
    (server.container_directory / "model" / "m").mkdir(parents=True)
    server._supervisor = supervisor  # type: ignore[assignment]
    with pytest.raises(LocalEndpointError, match="ended before it was ready"):
        await server._start_process()
    assert server._reservation is not None
    assert server._reservation.getsockname()[1] == server.port
    await server.stop()
    (request,) = supervisor.requests
    assert request["environment"]["SAGEMAKER_BIND_TO_PORT"] == str(server.port)
