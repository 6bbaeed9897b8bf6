"""The archive of an environment: the same bytes from the same files, on every machine."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path

from isal import igzip

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from triton_model_check.artifacts.environments.lock import LOCK_MEMBER, EnvironmentLock, read_lock
from triton_model_check.model_repository.temporary_folders import partial_folder
from triton_model_check.untrusted.tar_reader import UnpackLimits, read_members

_EPOCH = 315_532_800  # 1980-01-01: wheels cannot contain older times
_LIMITS = UnpackLimits(max_bytes=1 << 36)
_MOST_LOCK_BYTES = 16 << 20
_LEVEL = 2


def write_tar(environment: Path, links: Mapping[str, str], path: Path) -> None:
    """Write an environment as a tar file: sorted, without owners, with one time and two modes."""
    names = [found.relative_to(environment).as_posix() for found in environment.rglob("*")]
    with tarfile.open(path, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted({*names, *links}):
            _add(tar, name, environment / name, links.get(name))


def _add(tar: tarfile.TarFile, name: str, path: Path, link: str | None) -> None:
    member = tarfile.TarInfo(name)
    member.mtime, member.mode = _EPOCH, 0o755
    if link is not None:
        member.type, member.linkname = tarfile.SYMTYPE, link
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
    """Write an environment to the user's file: ``.tar``, or compressed for ``.tar.gz`` and ``.tgz``."""
    is_compressed = output.name.endswith((".tar.gz", ".tgz"))
    if not is_compressed and output.suffix != ".tar":
        raise InvalidValueError(f"--output: must end with .tar or .tar.gz, got {str(output)!r}; rename it")
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
            f"{output}: cannot be written ({(error.strerror or str(error)).lower()}); choose another file"
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
