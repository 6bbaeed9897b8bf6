"""Gives a server and its children an ``/opt/ml`` of their own, as in a container; nobody else sees it.

A mount namespace of its own, within a user namespace where the user is not root. It ends with its last
process, so nothing is ever left mounted. Standard library only, and no import of the package: the supervisor
loads this file by its path, and so does the probe.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

__all__ = ["CONTAINER_FOLDER", "enter", "why_unavailable"]

#: Where a container of SageMaker finds its models.
CONTAINER_FOLDER = Path("/opt/ml")
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_PROBE_SECONDS = 10.0
_libc = ctypes.CDLL(None, use_errno=True)


def enter(source: Path) -> None:
    """Show ``source`` at ``/opt/ml`` to this process, single-threaded, and to those it starts.

    Beside ``source`` an empty folder may be made. Raises ``OSError`` where the platform does not allow it.
    """
    _unshare()
    _mount("none", Path("/"), _MS_REC | _MS_PRIVATE)
    if not CONTAINER_FOLDER.is_dir():
        _add_to_parent(CONTAINER_FOLDER, source.with_name("host"))
    _mount(str(source), CONTAINER_FOLDER, _MS_BIND | _MS_REC)


def why_unavailable(needed: Iterable[Path]) -> str | None:
    """Why no server can have its own ``/opt/ml`` here; ``None`` where one can. Tried, not guessed.

    ``needed`` are paths that the server must still see.
    """
    for path in (Path(tempfile.gettempdir()), *needed):
        if path.resolve().is_relative_to(CONTAINER_FOLDER):
            return f"{path} lies below {CONTAINER_FOLDER}"
    with tempfile.TemporaryDirectory(prefix="constructs-triton-") as folder:
        source = Path(folder) / "ml"
        source.mkdir()
        (source / "probe").touch()
        try:
            done = subprocess.run(
                [sys.executable, "-I", __file__, str(source)],
                capture_output=True,
                text=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")


def _unshare() -> None:
    """A mount namespace of this process, by way of a user namespace where that takes more rights."""
    if _libc.unshare(_CLONE_NEWNS) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS), "unshare")
    # The same user as before: only the right to mount is new, and the server loses it when it is executed.
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _add_to_parent(target: Path, staging: Path) -> None:
    """Make ``target`` without touching its parent: a small tmpfs over the parent shows all that it had."""
    parent = target.parent
    if parent.is_symlink() or not parent.is_dir():
        raise OSError(f"there is no folder {parent}")
    staging.mkdir(exist_ok=True)
    _mount(str(parent), staging, _MS_BIND | _MS_REC)
    _mount("tmpfs", parent, _MS_NOSUID | _MS_NODEV, type="tmpfs", data="size=1m,mode=755")
    for entry in staging.iterdir():
        place = parent / entry.name
        if entry.is_symlink():
            place.symlink_to(entry.readlink())
            continue
        if entry.is_dir():
            place.mkdir()
        else:
            place.touch()
        _mount(str(entry), place, _MS_BIND | _MS_REC)
    target.mkdir()


def _mount(
    source: str, target: Path, flags: int, *, type: str | None = None, data: str | None = None
) -> None:
    words = [None if word is None else word.encode() for word in (type, data)]
    result = _libc.mount(source.encode(), os.fsencode(target), words[0], ctypes.c_ulong(flags), words[1])
    _check(result, f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _probe(source: Path) -> int:
    try:
        enter(source)
    except OSError as error:
        print(error.strerror or error, file=sys.stderr)  # noqa: T201 - the probe's whole answer
        return 1
    return 0 if (CONTAINER_FOLDER / "probe").is_file() else 2


if __name__ == "__main__":
    raise SystemExit(_probe(Path(sys.argv[1])))
