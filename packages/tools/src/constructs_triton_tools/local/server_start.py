"""Starts all containers of a local run at the same time.

Nothing here imports the gateway, which is imported while the servers start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from constructs_triton_tools.local.running_container import ContainerRunner, RunningContainer
from constructs_triton_tools.local.sources.specs import EndpointSpec, VariantSpec, variants_of

__all__ = ["LocalServer", "create_servers", "first_error", "start_all"]


@dataclass(frozen=True, slots=True)
class LocalServer:
    """The container of a variant or component of an endpoint."""

    endpoint: EndpointSpec
    variant: VariantSpec
    container: RunningContainer


def create_servers(
    specs: Sequence[EndpointSpec], runner: ContainerRunner, stack: AsyncExitStack
) -> list[LocalServer]:
    """Return the servers of all endpoints. They are on the stack, to be stopped, and not started
    yet.
    """
    servers = [
        LocalServer(spec, variant, runner.create(spec, variant))
        for spec, variant in variants_of(specs)
    ]
    stack.push_async_callback(_stop_all, servers)
    return servers


async def start_all(servers: Sequence[LocalServer]) -> None:
    """Start all servers at the same time, and wait until all are ready.

    Raises:
        LocalEndpointError: one does not start.
    """
    async with first_error() as group:
        for server in servers:
            group.create_task(server.container.start())


@asynccontextmanager
async def first_error() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises the first error instead of an exception group."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except* Exception as errors:
        raise errors.exceptions[0] from None


async def _stop_all(servers: Sequence[LocalServer]) -> None:
    await asyncio.gather(*(server.container.stop() for server in servers))
