"""What a server is started with, without starting it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from constructs_triton.local.server.installation import ModelPython, TritonInstallation
from constructs_triton.local.server.server import ServerSettings, TritonServer
from constructs_triton.local.sources.specs import ContainerSpec

NOWHERE = Path("/nowhere")
SETTINGS = ServerSettings(
    TritonInstallation(NOWHERE, NOWHERE, NOWHERE, None),
    ModelPython(NOWHERE, (3, 11), None),
    lambda _: None,
    has_private_addresses=True,
    has_network_isolation=True,
)


def request_of(folder: Path, settings: ServerSettings = SETTINGS, **container: Any) -> dict[str, Any]:
    """The start request that the supervisor would receive."""
    spec = ContainerSpec("m", "", "s3://bucket/m.tar.gz", archive=Path("m.tar.gz"), **container)
    server = TritonServer("e/v", spec, settings)
    server.directory = folder
    (server.container_directory / "model" / "m").mkdir(parents=True, exist_ok=True)
    return dict(server._request())


def test_a_server_binds_the_port_of_the_container(tmp_path: Path) -> None:
    """With a private address all servers can have 8080, whatever the template says."""
    request = request_of(tmp_path, environment={"SAGEMAKER_BIND_TO_PORT": "9000"})
    assert request["private_port"] == 8080
    assert "--sagemaker-port=8080" in request["argv"]
    assert request["environment"]["SAGEMAKER_BIND_TO_PORT"] == "8080"


def test_other_front_ends_get_a_loopback_address_whatever_the_template_adds(tmp_path: Path) -> None:
    """The server takes the last of several equal flags, and the run's own come last."""
    arguments = "--grpc-address=0.0.0.0 --metrics-address=0.0.0.0 --allow-http=true --http-address=0.0.0.0"
    words = request_of(tmp_path, environment={"SAGEMAKER_TRITON_ADDITIONAL_ARGS": arguments})["argv"]
    for name in ("http", "grpc", "metrics"):
        flags = [word for word in words if word.startswith(f"--{name}-address=")]
        assert flags == [f"--{name}-address=0.0.0.0", f"--{name}-address=127.0.0.1"]


def test_open_ports_are_not_reported(tmp_path: Path) -> None:
    """Without private addresses the supervisor starts the server without a filter."""
    settings = replace(SETTINGS, has_private_addresses=False)
    assert request_of(tmp_path, settings)["private_port"] is None


@pytest.mark.parametrize("is_isolated", [True, False])
@pytest.mark.parametrize("is_available", [True, False])
def test_only_an_isolated_server_has_no_network(
    tmp_path: Path, is_isolated: bool, is_available: bool
) -> None:
    """If the machine does not support isolation, the server has a network, and the run reports it."""
    settings = replace(SETTINGS, has_network_isolation=is_available)
    request = request_of(tmp_path, settings, is_isolated=is_isolated)
    assert request["has_network"] == (not (is_isolated and is_available))
