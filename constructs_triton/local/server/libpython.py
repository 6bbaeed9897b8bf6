"""Finds the shared library of a Python interpreter, which the Python backend's stub loads.

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
    """The location of a libpython.

    ``directory`` must be in ``LD_LIBRARY_PATH``; it is ``None`` if the loader finds the library without it.
    """

    name: str
    directory: Path | None


def soname(version: tuple[int, int]) -> str:
    """Return the library's name, for example ``libpython3.11.so.1.0``."""
    return f"libpython{version[0]}.{version[1]}.so.1.0"


def find_libpython(
    version: tuple[int, int] | None = None, library_directory: str | None = None
) -> LibPython | None:
    """Find the shared library of this Python version; ``None`` if there is none.

    First in ``library_directory``, where the patch version matches the standard library (default for the
    running interpreter: ``sysconfig``'s LIBDIR), then where the dynamic loader looks.
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
    """Return the command that installs the library on Debian or Ubuntu."""
    return f"apt-get install libpython{version[0]}.{version[1]}"


def _loader_cache() -> frozenset[str]:
    """Return the libraries that the dynamic loader finds, for this machine's word size."""
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
