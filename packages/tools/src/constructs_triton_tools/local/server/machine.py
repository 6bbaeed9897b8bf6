"""What this machine has for the bundled servers of a run.

Each question takes a process, so they are asked before the models are read, and this module imports
little.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
    def inspect(cls, options: RunOptions, report: Callable[[str], None]) -> Machine:
        """Find the server and the Python, and try the features. Each takes a process.

        Raises:
            LocalEndpointError: the Python or the server of the options is none, or this machine has
                no private addresses and open ports are not allowed.
            MissingDependencyError: the server cannot be installed, or does not run on this machine.
        """
        require_machine(options.tritonserver)
        with ThreadPoolExecutor(max_workers=2) as beside:
            has_addresses = beside.submit(
                has_private_addresses, report, allows_open_ports=options.allow_open_ports
            )
            no_mounts = beside.submit(why_no_private_mounts, is_wanted=options.uses_private_mounts)
            # First what fails in a second: the server of the wheel may have to be downloaded.
            python = inspect_python(options.python, PACKAGES if options.uses_stand_ins else None)
            installation = find_installation(options.tritonserver)
            has_mounts = has_private_mounts(
                [installation.executable, python.executable], report, no_mounts.result()
            )
            return cls(installation, python, has_mounts, has_addresses.result())
