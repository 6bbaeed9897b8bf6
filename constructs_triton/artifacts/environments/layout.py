"""The files of an environment: a virtual environment without an interpreter."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

from constructs_triton.artifacts.environments.lock import LOCK_MEMBER, EnvironmentLock
from constructs_triton.artifacts.environments.target import EnvironmentTarget

__all__ = ["arrange", "site_packages"]

# Triton before 25.08 runs this in bash. Later releases set the same variables and only require the file.
_ACTIVATE = """\
export VIRTUAL_ENV="${BASH_SOURCE[0]%/bin/activate}"
export PATH="$VIRTUAL_ENV/bin${PATH:+:$PATH}"
unset PYTHONHOME
"""
# What a wheel contains besides its modules: scripts, data and headers.
_OUTSIDE = ("bin", "share", "etc", "include", "man")
# Files that describe the machine that installed the package.
_OF_THE_MACHINE = ("INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")


def site_packages(environment: Path, target: EnvironmentTarget) -> Path:
    """Return the folder of an environment's packages."""
    return environment / "lib" / f"python{target.python}" / "site-packages"


def arrange(environment: Path, lock: EnvironmentLock, target: EnvironmentTarget) -> dict[str, str]:
    """Add what makes Triton's stub find the unpacked packages, and return the links of the environment.

    Packages come first, then those of the interpreter in ``target.home``. The files do not depend on the
    machine.
    """
    site = site_packages(environment, target)
    (site / ".lock").unlink(missing_ok=True)
    for record in sorted(site.glob("*.dist-info/RECORD")):
        _tidy(environment, site, record)
    for top in _OUTSIDE:
        if (site / top).is_dir() and not any(path.is_file() for path in (site / top).rglob("*")):
            shutil.rmtree(site / top)
    _write(environment / "bin" / "activate", _ACTIVATE)
    settings = f"home = {target.home}\ninclude-system-site-packages = true\nversion = {target.python}\n"
    _write(environment / "pyvenv.cfg", settings)
    _write(environment / LOCK_MEMBER, lock.text)
    if target.more_packages:  # a virtual environment of the machine, which is not that of the interpreter
        _write(site / "~constructs-triton.pth", f"{target.more_packages}\n")
    return {
        "bin/python3": f"{target.home}/python3",
        "bin/python": "python3",
        f"bin/python{target.python}": "python3",
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def _tidy(environment: Path, site: Path, record: Path) -> None:
    """Move the files of a package that are no modules, and write its list of files again."""
    with record.open(encoding="utf-8", newline="") as file:
        rows = list(_tidied(environment, site, list(csv.reader(file))))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(sorted(rows))
    _write(record, text.getvalue())


def _tidied(environment: Path, site: Path, rows: list[list[str]]) -> Iterator[list[str]]:
    for row in rows:
        name, top = row[0], row[0].partition("/")[0]
        if "/" in name and name.rpartition("/")[2] in _OF_THE_MACHINE and ".dist-info/" in name:
            (site / name).unlink(missing_ok=True)
        elif top in _OUTSIDE and not (site / top / "__init__.py").exists():
            _move(site / name, environment / name, is_script=top == "bin")
            yield [f"../../../{name}", "", ""]
        else:
            yield row


def _move(source: Path, destination: Path, *, is_script: bool) -> None:
    """Move a file. A script names the interpreter of the machine, and gets the one on PATH instead."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    source.replace(destination)
    if not is_script:
        return
    content = destination.read_bytes()
    first, separator, others = content.partition(b"\n")
    if first.startswith(b"#!") and b"python" in first:
        destination.write_bytes(b"#!/usr/bin/env python3" + separator + others)
    destination.chmod(0o755)
