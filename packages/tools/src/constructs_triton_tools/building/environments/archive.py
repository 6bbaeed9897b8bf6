"""The archive of an environment: the same bytes from the same files, on every machine."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import stat
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path

from isal import igzip

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_core.untrusted.drafts import partial_folder
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.artifacts.environments.lock import LOCK_MEMBER, EnvironmentLock, read_lock
from triton_model_check.artifacts.environments.target import EnvironmentTarget
from triton_model_check.untrusted.tar_reader import UnpackLimits, read_members

# Triton before 25.08 runs this in bash. Later releases set the same variables and only require the
# file.
_ACTIVATE = """\
export VIRTUAL_ENV="${BASH_SOURCE[0]%/bin/activate}"
export PATH="$VIRTUAL_ENV/bin${PATH:+:$PATH}"
unset PYTHONHOME
"""
# What a wheel contains besides its modules: scripts, data and headers.
_OUTSIDE = ("bin", "share", "etc", "include", "man")
# Files that describe the machine that installed the package.
_OF_THE_MACHINE = ("INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
_EPOCH = 315_532_800  # 1980-01-01: wheels cannot contain older times
_LIMITS = UnpackLimits(max_bytes=1 << 36)
_MOST_LOCK_BYTES = 16 << 20
_LEVEL = 2


def site_packages(environment: Path, target: EnvironmentTarget) -> Path:
    """Return the folder of an environment's packages."""
    return environment / "lib" / f"python{target.python}" / "site-packages"


def arrange(environment: Path, lock: EnvironmentLock, target: EnvironmentTarget) -> dict[str, str]:
    """Add what makes Triton's stub find the unpacked packages, and return the links of the
    environment.

    Packages come first, then those of the interpreter in ``target.home``. The files do not depend
    on the machine.
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
    settings = (
        f"home = {target.home}\ninclude-system-site-packages = true\nversion = {target.python}\n"
    )
    _write(environment / "pyvenv.cfg", settings)
    _write(environment / LOCK_MEMBER, lock.text)
    if (
        target.more_packages
    ):  # a virtual environment of the machine, which is not that of the interpreter
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
                    f"{path.relative_to(environment)}: a package has installed something that is "
                    "no file or folder; use another version of the package"
                )


def _move_out(environment: Path, site: Path) -> dict[str, str]:
    """Move the files of packages that are no modules; return their new paths by the old ones.

    The files are those that are there. What a wheel says in RECORD of its files is not trusted.
    """
    moved: dict[str, str] = {}
    for top in _OUTSIDE:
        if not (site / top).is_dir() or (site / top / "__init__.py").exists():
            continue
        names = [
            path.relative_to(site).as_posix() for path in (site / top).rglob("*") if path.is_file()
        ]
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
    """Make a file executable.

    It names the interpreter of the machine, and gets the one on PATH instead.
    """
    content = path.read_bytes()
    first, separator, others = content.partition(b"\n")
    if first.startswith(b"#!") and b"python" in first:
        path.write_bytes(b"#!/usr/bin/env python3" + separator + others)
    path.chmod(0o755)


def _write_record(record: Path, installed: Collection[str], moved: Mapping[str, str]) -> None:
    """Write the list of a package's files again: only of those that are there,
    with their new paths.
    """
    try:
        text = read_regular(record).decode()
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except (OSError, ValueError, csv.Error) as error:
        raise InvalidValueError(
            f"{record.parent.name}/RECORD: cannot be read ({error}); "
            "use another version of the package"
        ) from error
    if outside := [row[0] for row in rows if _leads_outside(row[0])]:
        raise InvalidValueError(
            f"{record.parent.name}/RECORD: a package can install files only in its own folder, got "
            f"{outside[0][:200]!r}; do not use this package"
        )
    kept = [[moved[row[0]], "", ""] if row[0] in moved else row for row in rows]
    known = {*installed, *moved.values()}
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(
        sorted(row for row in kept if row[0] in known)
    )
    _write(record, written.getvalue())


def _leads_outside(name: str) -> bool:
    return name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name)


def write_tar(environment: Path, links: Mapping[str, str], path: Path) -> None:
    """Write an environment as a tar file: sorted, without owners, with one time and two modes."""
    names = [found.relative_to(environment).as_posix() for found in environment.rglob("*")]
    with tarfile.open(path, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted({*names, *links}):
            _add(tar, name, environment / name, links.get(name))


def _add(tar: tarfile.TarFile, name: str, path: Path, link: str | None) -> None:
    member = tarfile.TarInfo(name)
    member.mtime = _EPOCH
    member.mode = 0o755
    if link is not None:
        member.type = tarfile.SYMTYPE
        member.linkname = link
        tar.addfile(member)
    elif path.is_dir():
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
    else:
        status = path.stat()
        member.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
        member.size = status.st_size
        with path.open("rb") as file:
            tar.addfile(member, file)


def write_file(archive: Path, output: Path) -> None:
    """Write an environment to the user's file: ``.tar``,
    or compressed for ``.tar.gz`` and ``.tgz``.
    """
    is_compressed = output.name.endswith((".tar.gz", ".tgz"))
    if not is_compressed and output.suffix != ".tar":
        raise InvalidValueError(
            f"--output: must end with .tar or .tar.gz, got {str(output)!r}; rename it"
        )
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with partial_folder(output.parent) as folder:
            draft = folder / output.name
            if is_compressed:
                _compress(archive, draft)
            else:
                shutil.copyfile(archive, draft)
            draft.replace(output)
    except OSError as error:
        raise InvalidValueError(
            f"{output}: "
            f"cannot be written ({(error.strerror or str(error)).lower()}); choose another file"
        ) from error


def _compress(archive: Path, output: Path) -> None:
    """Compress a file as archives of models are compressed, without a name and a time."""
    with (
        archive.open("rb") as source,
        output.open("wb") as raw,
        igzip.IGzipFile("", "wb", _LEVEL, raw, mtime=0) as stream,  # type: ignore[no-untyped-call]
    ):
        shutil.copyfileobj(source, stream, 1 << 20)


def lock_of_archive(path: Path) -> EnvironmentLock | None:
    """Return the lock file in an environment that this package has built, else ``None``."""
    try:
        for member in read_members(path, _LIMITS, accept_plain=True):
            name = os.path.normpath(member.name)
            if name == LOCK_MEMBER and member.size <= _MOST_LOCK_BYTES:
                return read_lock(b"".join(member.chunks()), f"{path}: {LOCK_MEMBER}")
            if name > LOCK_MEMBER:  # members are sorted, and its packages come later
                return None
    except (OSError, ArchiveError):
        return None
    return None
