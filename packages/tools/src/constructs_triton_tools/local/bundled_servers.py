"""Creates the containers of a run that the bundled Triton server runs, on Linux."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.server.host_features import has_network_isolation
from constructs_triton_tools.local.server.installation import ModelPython
from constructs_triton_tools.local.server.machine import Machine
from constructs_triton_tools.local.server.memory import available_bytes
from constructs_triton_tools.local.server.server import ServerSettings, TritonServer
from constructs_triton_tools.local.sources.specs import (
    EndpointSpec,
    VariantSpec,
    label_of,
    variants_of,
)
from constructs_triton_tools.local.stand_ins.stand_ins import StandIns


@dataclass(frozen=True, slots=True)
class BundledServers:
    """Creates servers with the same settings."""

    settings: ServerSettings

    @classmethod
    def on(
        cls,
        machine: Machine,
        options: RunOptions,
        specs: Sequence[EndpointSpec],
        report: Callable[[str], None],
        folder: Path,
    ) -> BundledServers:
        """Return what creates the servers of these endpoints on a machine.

        ``folder`` is deleted if the gateway is killed.
        """
        isolated = [label_of(*pair) for pair in variants_of(specs) if pair[1].container.is_isolated]
        settings = ServerSettings(
            installation=machine.installation,
            python=machine.python,
            report=report,
            startup_timeout_seconds=options.startup_timeout_seconds,
            invocation_timeout_seconds=options.invocation_timeout_seconds,
            has_private_mounts=machine.has_private_mounts,
            has_private_addresses=machine.has_private_addresses,
            has_network_isolation=has_network_isolation(
                isolated, report, has_addresses=machine.has_private_addresses
            ),
            is_exact=options.is_exact,
            stand_ins=_stand_ins(options, machine.python),
            run_folders=(folder,),
        )
        return cls(settings)

    def create(self, endpoint: EndpointSpec, variant: VariantSpec) -> TritonServer:
        """Return the server of a variant, which is not started."""
        server = TritonServer(label_of(endpoint, variant), variant.container, self.settings)
        if variant.startup_timeout_seconds is not None:
            server.startup_timeout_seconds = variant.startup_timeout_seconds
        return server

    def available_bytes(self) -> int:
        """Return how much memory can be used without swapping."""
        return available_bytes()


def _stand_ins(options: RunOptions, python: ModelPython) -> StandIns | None:
    if not options.uses_stand_ins:
        return None
    return StandIns(python.packages, python.executable, options.stand_ins)
