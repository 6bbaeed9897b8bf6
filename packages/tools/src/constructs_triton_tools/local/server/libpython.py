"""Finds the shared library of a Python interpreter, which the Python backend's stub loads.

Standard library only, and no import of the package: a system check loads this file by its path
before anything is installed.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

_LOADER_CACHE = Path("/etc/ld.so.cache")


@dataclass(frozen=True)
class LibPython:
    """The location of a libpython.

    ``directory`` must be in ``LD_LIBRARY_PATH``; it is ``None`` if the loader finds the library
    without it.
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

    First in ``library_directory``, where the patch version matches the standard library (default
    for the running interpreter: ``sysconfig``'s LIBDIR), then where the dynamic loader looks.
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
    return LibPython(name, None) if _is_in_loader_cache(name) else None


def install_command(version: tuple[int, int]) -> str:
    """Return the command that installs the library on Debian or Ubuntu."""
    return f"apt-get install libpython{version[0]}.{version[1]}"


def _is_in_loader_cache(name: str) -> bool:
    """Whether the dynamic loader finds a library for this machine, as ``ldconfig -p`` lists it."""
    try:
        cache = _LOADER_CACHE.read_bytes()
        found = re.findall(rb"[^\0]*/" + re.escape(name.encode()) + rb"(?=\0)", cache)
        return any(
            _machine(Path(os.fsdecode(path))) == _machine(Path(sys.executable)) for path in found
        )
    except OSError:  # macOS and musl have no such file
        return False


def _machine(path: Path) -> tuple[bytes, bytes]:
    """Word size and processor of an ELF file."""
    with path.open("rb") as file:
        header = file.read(20)
    return header[4:6], header[18:20]
