"""Finds the shared library of a Python, which the Python backend's stub embeds.

Standard library only, and no import of the package: a system check loads this file by its path before
anything is installed.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LibPython", "find_libpython", "install_command", "soname"]


@dataclass(frozen=True)
class LibPython:
    """Where a libpython lies.

    ``directory`` must be on ``LD_LIBRARY_PATH``; it is ``None`` where the loader finds the library anyway.
    """

    name: str
    directory: Path | None


def soname(version: tuple[int, int]) -> str:
    """The name that the stub asks the loader for, e.g. ``libpython3.11.so.1.0``."""
    return f"libpython{version[0]}.{version[1]}.so.1.0"


def find_libpython(
    version: tuple[int, int] | None = None, library_directory: str | None = None
) -> LibPython | None:
    """The shared library of a Python of this minor version, or ``None``.

    Looked for first in ``library_directory`` (that Python's own ``sysconfig`` LIBDIR, the default for the
    running one), whose patch level fits its standard library, then with the loader.
    """
    version = version or sys.version_info[:2]
    if library_directory is None and version == sys.version_info[:2]:
        library_directory = sysconfig.get_config_var("LIBDIR")
    name = soname(version)
    if library_directory:
        directory = Path(library_directory)
        for candidate in (directory, directory / (sysconfig.get_config_var("MULTIARCH") or "")):
            if (candidate / name).exists():
                return LibPython(name, candidate)
    return LibPython(name, None) if name in _loader_cache() else None


def install_command(version: tuple[int, int]) -> str:
    """The command that puts the library on Debian or Ubuntu."""
    return f"apt-get install libpython{version[0]}.{version[1]}"


def _loader_cache() -> frozenset[str]:
    """The names that the dynamic loader knows, for this machine's word size."""
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            listing = subprocess.run([program, "-p"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        lines = (line for line in listing.splitlines() if "=>" in line)
        return frozenset(line.split()[0] for line in lines if _fits_machine(line))
    return frozenset()


def _fits_machine(line: str) -> bool:
    return platform.machine() != "x86_64" or "x86-64" in line
