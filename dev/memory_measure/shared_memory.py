"""Measures ``/dev/shm`` beside what the checker calculates: at the start, and after calls.

    PYTHONPATH=dev .venv/bin/python -m memory_measure.shared_memory

The last cases have a ``/dev/shm`` of their own that is too small for some calls. They need the
right to mount one, which root has, and are left out without it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.error
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton_tools.local.server.installation import (
    TritonInstallation,
    find_installation,
)
from memory_measure.repositories import write_python
from memory_measure.server import MeasuredServer, running
from triton_model_check.memory.shared_memory import Region

_MIB = 2**20
_NEW = Region(_MIB, _MIB)
_OLD = Region(64 * _MIB, 64 * _MIB)
"""What releases from 21.04 to 23.08 have."""
_SAGEMAKER = Region(16 * _MIB, _MIB)


@dataclass(frozen=True, slots=True)
class Case:
    """Calls of a model that returns its input of ``mebibytes``, one after the other.

    ``limit`` is the size of ``/dev/shm`` in MiB; without it, that of the machine.
    """

    instances: int
    region: Region
    mebibytes: Sequence[float]
    limit: int | None = None

    @property
    def name(self) -> str:
        """The case in words."""
        first, growth = self.region.first // _MIB, self.region.growth // _MIB
        limit = "" if self.limit is None else f" in {self.limit} MiB"
        return f"{self.instances} instances of {first} + {growth} MiB{limit}"


CASES = [
    *(Case(count, _NEW, [4] * 2 * count) for count in (1, 2, 8)),
    Case(1, _NEW, [0.25, 0.5, 1, 8, 3, 32]),
    Case(1, _OLD, [31, 32, 40, 70]),
    Case(1, _SAGEMAKER, [7, 8, 20]),
    Case(8, _NEW, [0.25, 1], limit=8),
    Case(8, _NEW, [], limit=7),
    Case(1, _NEW, [6, 7.5, 8], limit=16),
    Case(2, _NEW, [7, 7, 7, 7], limit=32),
    Case(1, _OLD, [31, 32], limit=64),
    Case(2, _OLD, [], limit=64),
]


def measure_shared_memory(installation: TritonInstallation) -> list[dict[str, Any]]:
    """Run each case."""
    can_mount = subprocess.run([*_own_shared_memory(1), "true"], check=False).returncode == 0
    cases = [case for case in CASES if can_mount or case.limit is None]
    return [_measure(installation, case) for case in cases]


def _measure(installation: TritonInstallation, case: Case) -> dict[str, Any]:
    region = case.region
    options = [
        f"--backend-config=python,shm-default-byte-size={region.first}",
        f"--backend-config=python,shm-growth-byte-size={region.growth}",
    ]
    prefix = [] if case.limit is None else _own_shared_memory(case.limit)
    found: dict[str, Any] = {
        "case": case.name,
        "region": [region.first, region.growth],
        "instances": case.instances,
        "limit": None if case.limit is None else case.limit * _MIB,
        "calls": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "models"
        write_python(repository, "pass", case.instances)
        try:
            with running(installation, repository, options, prefix) as server:
                found["at the start"] = server.regions()
                for mebibytes in case.mebibytes:
                    found["calls"].append(_call(server, int(mebibytes * _MIB), region))
        except RuntimeError:
            log = (repository.parent / "server.log").read_text("utf-8", "replace")
            if "Unable to initialize shared memory" not in log:
                raise
            found["at the start"] = None  # the regions do not fit, so that the server ends
    return found


def _call(server: MeasuredServer, size: int, region: Region) -> dict[str, Any]:
    """Send a tensor of a size, and return the regions that are there afterwards."""
    try:
        server.call(size // 4)
        failed = False
    except urllib.error.HTTPError:
        failed = True
    return {
        "call_bytes": 2 * size,
        "calculated": region.after(2 * size),
        "regions": server.regions(),
        "failed": failed,
    }


def _own_shared_memory(mebibytes: int) -> list[str]:
    """Return the beginning of a command that runs with a ``/dev/shm`` of its own."""
    script = f'mount -t tmpfs -o size={mebibytes}m shm /dev/shm && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]


if __name__ == "__main__":
    json.dump(measure_shared_memory(find_installation(None)), sys.stdout, indent=1)
    print()
