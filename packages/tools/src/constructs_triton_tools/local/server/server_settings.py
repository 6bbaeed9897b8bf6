"""The settings that all servers of a run share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from constructs_triton_core.facts.limits import INVOCATION_TIMEOUT_SECONDS
from constructs_triton_tools.local.server.front_end_ports import FrontEndPorts
from constructs_triton_tools.local.server.installation import ModelPython, TritonInstallation
from constructs_triton_tools.local.stand_ins.stand_ins import StandIns

__all__ = ["ServerSettings"]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings that all servers of a run share. ``report`` prints a line for the user."""

    installation: TritonInstallation
    python: ModelPython
    report: Callable[[str], None]
    startup_timeout_seconds: float | None = None
    invocation_timeout_seconds: float = INVOCATION_TIMEOUT_SECONDS
    #: Whether each server has a private /opt/ml, as in the container.
    has_private_mounts: bool = False
    #: Whether each server listens on a Unix socket in its folder instead of all network interfaces.
    has_private_addresses: bool = False
    #: Whether servers with network isolation run without a network.
    has_network_isolation: bool = False
    #: Whether models whose instance groups this machine cannot run are refused.
    is_exact: bool = False
    #: Replacements for backends that the server does not have; ``None`` for none.
    stand_ins: StandIns | None = None
    #: Folders of the whole run, which the supervisors delete when it ends.
    run_folders: tuple[Path, ...] = ()
    front_end_ports: FrontEndPorts = field(default_factory=FrontEndPorts)
