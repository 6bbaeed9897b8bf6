"""Finds a Python of another version on this machine, and makes environments of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from foreign_models.cache import CACHE


def find_python(version: str) -> Path | None:
    """Return an interpreter of a version such as "3.10", or ``None`` if there is none."""
    for candidate in _candidates(version):
        probe = [str(candidate), "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
        try:
            done = subprocess.run(probe, capture_output=True, text=True, timeout=30, check=False)
        except OSError:
            continue
        if done.stdout.strip() == version:
            return candidate
    return None


def _candidates(version: str) -> Iterator[Path]:
    yield Path(sys.executable)
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    # The commands of pyenv run only the versions that are switched on; the others are here.
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))


def environment(name: str, version: str, packages: Sequence[str]) -> Path | None:
    """Return the Python of an environment in the cache, which is created once.

    ``None`` if this machine has no Python of the version.
    """
    folder = CACHE / "environments" / name
    python = folder / "bin" / "python"
    if python.exists():
        return python
    found = find_python(version)
    if found is None:
        return None
    # A folder that is created in part must not look like an environment.
    new = folder.with_name(f"{name}.new")
    shutil.rmtree(new, ignore_errors=True)
    subprocess.run([found, "-m", "venv", new], check=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    subprocess.run([new / "bin" / "python", *install], check=True)
    new.rename(folder)
    return python
