"""The files of an environment: a virtual environment without an interpreter."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.artifacts.environments.lock import LOCK_MEMBER, EnvironmentLock
from triton_model_check.artifacts.environments.target import EnvironmentTarget

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
    _refuse_links(environment)
    for name in _OF_THE_MACHINE:
        for path in site.glob(f"*.dist-info/{name}"):
            path.unlink()
    moved = _move_out(environment, site)
    installed = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    for record in sorted(site.glob("*.dist-info/RECORD")):
        _write_record(record, installed, moved)
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


def _refuse_links(environment: Path) -> None:
    """A wheel contains files and folders. What a link points to would be packed, or changed."""
    for folder, folders, files in os.walk(environment):
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                raise InvalidValueError(
                    f"{path.relative_to(environment)}: a package has installed something that is no file or "
                    "folder; use another version of the package"
                )


def _move_out(environment: Path, site: Path) -> dict[str, str]:
    """Move the files of packages that are no modules; return their new paths by the old ones.

    The files are those that are there. What a wheel says in RECORD of its files is not trusted.
    """
    moved: dict[str, str] = {}
    for top in _OUTSIDE:
        if not (site / top).is_dir() or (site / top / "__init__.py").exists():
            continue
        names = [path.relative_to(site).as_posix() for path in (site / top).rglob("*") if path.is_file()]
        if not names:
            shutil.rmtree(site / top)
            continue
        (site / top).replace(environment / top)
        moved |= {name: f"../../../{name}" for name in names}
        if top == "bin":
            for name in names:
                _make_script(environment / name)
    return moved


def _make_script(path: Path) -> None:
    """Make a file executable. It names the interpreter of the machine, and gets the one on PATH instead."""
    content = path.read_bytes()
    first, separator, others = content.partition(b"\n")
    if first.startswith(b"#!") and b"python" in first:
        path.write_bytes(b"#!/usr/bin/env python3" + separator + others)
    path.chmod(0o755)


def _write_record(record: Path, installed: Collection[str], moved: Mapping[str, str]) -> None:
    """Write the list of a package's files again: only of those that are there, with their new paths."""
    try:
        text = read_regular(record).decode()
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except (OSError, ValueError, csv.Error) as error:
        raise InvalidValueError(
            f"{record.parent.name}/RECORD: cannot be read ({error}); use another version of the package"
        ) from error
    if outside := [row[0] for row in rows if _leads_outside(row[0])]:
        raise InvalidValueError(
            f"{record.parent.name}/RECORD: a package can install files only in its own folder, got "
            f"{outside[0][:200]!r}; do not use this package"
        )
    kept = [[moved[row[0]], "", ""] if row[0] in moved else row for row in rows]
    known = {*installed, *moved.values()}
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(sorted(row for row in kept if row[0] in known))
    _write(record, written.getvalue())


def _leads_outside(name: str) -> bool:
    return name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name)
