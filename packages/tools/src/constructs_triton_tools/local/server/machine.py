"""What this machine has for the bundled servers of a run.

Each question takes a process, so they are asked while the models are read, and this module imports
little.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from constructs_triton_tools.local.interruptible import finish_soon, run_in_thread
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.server.host_features import (
    has_private_addresses,
    has_private_mounts,
    why_no_private_mounts,
)
from constructs_triton_tools.local.server.installation import (
    ModelPython,
    TritonInstallation,
    find_installation,
    inspect_python,
    require_machine,
)
from constructs_triton_tools.local.stand_ins.frameworks import PACKAGES

__all__ = ["Machine"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What all endpoints of a run share: the server, the Python, and the features of this machine.

    Its fields are those of :class:`ServerSettings`.
    """

    installation: TritonInstallation
    python: ModelPython
    has_private_mounts: bool
    has_private_addresses: bool

    @classmethod
    async def inspect(cls, options: RunOptions, report: Callable[[str], None]) -> Machine:
        """Find the server and the Python, and try the features. Each takes a process.

        Raises:
            LocalEndpointError: the Python or the server of the options is none, or this machine has
                no private addresses and open ports are not allowed.
            MissingDependencyError: the server cannot be installed, or does not run on this machine.
        """
        require_machine(options.tritonserver)
        server = asyncio.create_task(run_in_thread(partial(_find_server, options)))
        features = asyncio.create_task(run_in_thread(partial(_try_features, options, report)))
        try:
            await asyncio.wait({server, features})
        finally:
            await finish_soon(server, features)
        installation, python = server.result()
        has_addresses, no_mounts = features.result()
        needed = [installation.executable, python.executable]
        return cls(
            installation, python, has_private_mounts(needed, report, no_mounts), has_addresses
        )


def _find_server(options: RunOptions) -> tuple[TritonInstallation, ModelPython]:
    # First what fails in a second: the server of the wheel may have to be downloaded.
    python = inspect_python(options.python, PACKAGES if options.uses_stand_ins else None)
    return find_installation(options.tritonserver), python


def _try_features(options: RunOptions, report: Callable[[str], None]) -> tuple[bool, str | None]:
    """Return whether servers have private addresses, and why they have no private mounts."""
    has_addresses = has_private_addresses(report, allows_open_ports=options.allow_open_ports)
    return has_addresses, why_no_private_mounts(is_wanted=options.uses_private_mounts)
