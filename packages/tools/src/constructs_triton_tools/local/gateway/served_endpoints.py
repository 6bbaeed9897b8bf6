"""Gives the gateway what the started servers serve."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

from constructs_triton_tools.local.gateway.inference_components import LocalComponent, LocalVariant
from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.server_start import LocalServer
from constructs_triton_tools.local.sources.specs import ComponentSpec, EndpointSpec

__all__ = ["served_endpoints", "wait_until_idle"]

#: The part of the free memory that all multi-model containers share equally by default.
_MEMORY_SHARE = 0.7
_IDLE_INTERVAL_SECONDS = 0.1


def served_endpoints(
    specs: Sequence[EndpointSpec],
    servers: Sequence[LocalServer],
    options: RunOptions,
    available_bytes: int,
) -> dict[str, RunningEndpoint]:
    """Return the endpoints by name.

    Args:
        specs: The endpoints.
        servers: All of their servers.
        options: Those of the run.
        available_bytes: The memory that containers could use before they started.
    """
    multi_models = sum(server.variant.container.is_multi_model for server in servers)
    limit = int(available_bytes * _MEMORY_SHARE / max(1, multi_models))
    if options.memory_limit_mib is not None:
        limit = options.memory_limit_mib * 2**20
    found: dict[str, list[LocalVariant]] = {spec.name: [] for spec in specs}
    for server in servers:
        variant = _served_variant(server, limit, options.wake_delay_seconds)
        found[server.endpoint.name].append(variant)
    return {spec.name: RunningEndpoint(spec, found[spec.name]) for spec in specs}


def _served_variant(
    server: LocalServer, memory_limit_bytes: int, wake_seconds: float
) -> LocalVariant:
    variant, container = server.variant, server.container
    if isinstance(variant, ComponentSpec):
        return LocalComponent(variant, container, wake_seconds)
    if not variant.container.is_multi_model:
        return LocalVariant(variant, container, None)
    multi_model = MultiModelContainer(server.endpoint, container, memory_limit_bytes)
    multi_model.place(variant.container.archives)
    return LocalVariant(variant, container, multi_model)


async def wait_until_idle(endpoints: Sequence[RunningEndpoint], timeout_seconds: float) -> None:
    """Wait for requests in progress, as long as a container may take to answer."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    servers = list(chain.from_iterable(endpoint.all_servers() for endpoint in endpoints))
    while asyncio.get_running_loop().time() < deadline:
        if all(server.is_idle for server in servers):
            return
        await asyncio.sleep(_IDLE_INTERVAL_SECONDS)
