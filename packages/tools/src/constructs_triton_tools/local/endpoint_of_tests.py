"""The local endpoint of a user's tests, as the fixtures of the pytest plugin start it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.errors import (
    InvalidValueError,
    LocalEndpointError,
    MissingDependencyError,
)
from constructs_triton_core.spelling import quoted

if TYPE_CHECKING:
    from constructs_triton_client import TritonClient
    from constructs_triton_tools.local.endpoint import LocalEndpoint

__all__ = ["client_of", "local_endpoint", "why_no_server"]

_EXTRA = "pip install 'constructs-triton[local]'"


def why_no_server(options: Mapping[str, Any]) -> str | None:
    """Return why no endpoint can run on this machine with these options of ``LocalEndpoint``,
    or ``None``.
    """
    for package in ("aiohttp", "boto3"):
        if find_spec(package) is None:
            return f"{package} is not installed; run `{_EXTRA}`"
    from constructs_triton_tools.local.containers.engine import ContainerEngine
    from constructs_triton_tools.local.server.host_features import has_private_addresses
    from constructs_triton_tools.local.server.installation import find_installation, inspect_python

    try:
        if options.get("engine") is not None:
            ContainerEngine(options["engine"]).memory_bytes()
            return None
        find_installation(_path(options.get("tritonserver")))
        inspect_python(_path(options.get("python")))
        has_private_addresses(
            lambda _: None, allows_open_ports=options.get("allow_open_ports", False)
        )
    except (LocalEndpointError, MissingDependencyError) as error:
        return str(error)
    return None


def _path(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)


def local_endpoint(app: Any, options: Mapping[str, Any]) -> LocalEndpoint:
    """Return the run of an app, or of the path of a cloud assembly; enter it to start.

    Raises:
        InvalidValueError: there is no such folder, or ``app`` is neither an app nor a path.
    """
    from constructs_triton_tools.local.endpoint import LocalEndpoint

    if isinstance(app, str | Path):
        if not Path(app).exists():
            raise InvalidValueError(
                f"triton_local_endpoint: {app} does not exist; define a fixture triton_app that "
                "returns your app, run `npx cdk synth`, or set --triton-assembly"
            )
        return LocalEndpoint.from_assembly(app, **options)
    if not hasattr(app, "synth"):
        raise InvalidValueError(
            "triton_app: must be a cdk.App or the path of a cloud assembly, got "
            f"{type(app).__name__}; return one from the fixture"
        )
    return LocalEndpoint.from_app(app, **options)


def client_of(local: LocalEndpoint, name: str | None = None) -> TritonClient:
    """Return a client of the only endpoint of a run, or of the one with a name.

    Raises:
        InvalidValueError: there are several endpoints and no name, or no endpoint of that name.
    """
    from constructs_triton_client import TritonClient

    known = local.endpoint_names
    if name is None and len(known) == 1:
        name = known[0]
    if name is None or name not in known:
        wrong = "there are several endpoints" if name is None else f'there is no endpoint "{name}"'
        raise InvalidValueError(
            f"triton_client: {wrong}; set --triton-endpoint to one of {quoted(known)}, or for the "
            f'tests of one module return {{"endpoint": "{known[0]}"}} from a fixture '
            "triton_local_options"
        )
    return TritonClient.for_endpoint(name, endpoint_url=local.endpoint_url)
