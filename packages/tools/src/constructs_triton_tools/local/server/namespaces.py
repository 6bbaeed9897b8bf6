"""Gives a server and its children their own ``/opt/ml``, and no network if the template isolates
it.

Both are Linux namespaces: no other process on the machine sees a difference. They end with the
server's last process, so no mount is left behind. Root may create them; other users get a user
namespace first, in which they may.

Sources: namespaces(7), unshare(2), user_namespaces(7), netdevice(7).
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Iterable
from fcntl import ioctl
from pathlib import Path

from constructs_triton_core.processes.children import python_command, run_child
from constructs_triton_core.untrusted.drafts import temporary_folder

#: The folder of the models in a SageMaker container.
CONTAINER_FOLDER = Path("/opt/ml")
_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_MS_NOSUID = 2
_MS_NODEV = 4
_MS_BIND = 4096
_MS_REC = 16384
_MS_PRIVATE = 1 << 18
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_PROBE_SECONDS = 10.0
_PROBE = (
    "from constructs_triton_tools.local.server.namespaces import probe; "
    "sys.exit(probe(*sys.argv[1:]))"
)
_libc = ctypes.CDLL(None, use_errno=True)


def enter(models: Path | None, *, has_network: bool) -> None:
    """Move this process into its own namespaces. It must have one thread; its children follow.

    ``models`` is the folder to show at ``/opt/ml``; ``None`` leaves the file system unchanged. An
    empty folder may be created beside it. Without ``has_network`` only the loopback interface is
    left, as in a container of SageMaker with network isolation.

    Raises:
        OSError: the platform does not allow it.
    """
    flags = (0 if models is None else _CLONE_NEWNS) | (0 if has_network else _CLONE_NEWNET)
    if flags:
        _unshare(flags)
    if models is not None:
        _mount_models(models)
    if not has_network:
        _start_loopback()


def why_hidden(needed: Iterable[Path]) -> str | None:
    """Return which path that a server must be able to read a private ``/opt/ml`` would hide;
    ``None`` if it hides none.
    """
    for path in (Path(tempfile.gettempdir()), *needed):
        if path.resolve().is_relative_to(CONTAINER_FOLDER):
            return f"{path} is below {CONTAINER_FOLDER}"
    return None


def why_no_private_mounts() -> str | None:
    """Try a private ``/opt/ml``, and return the reason if it does not work, else ``None``."""
    with temporary_folder() as folder:
        source = folder / "ml"
        source.mkdir()
        (source / "probe").touch()
        return _run_probe("mounts", str(source))


def why_no_network_isolation() -> str | None:
    """Try network isolation, and return the reason if it does not work, else ``None``."""
    return _run_probe("network")


def _unshare(flags: int) -> None:
    """Enter new namespaces, and a user namespace first if they need more permissions."""
    if _libc.unshare(flags) == 0:
        return
    user = os.geteuid()
    group = os.getegid()
    _check(_libc.unshare(_CLONE_NEWUSER | flags), "unshare")
    # The user stays the same. Only the permission to mount is new, and the server loses it at exec.
    Path("/proc/self/setgroups").write_bytes(b"deny")
    Path("/proc/self/uid_map").write_bytes(f"{user} {user} 1".encode())
    Path("/proc/self/gid_map").write_bytes(f"{group} {group} 1".encode())


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))  # struct ifreq


def _mount_models(models: Path) -> None:
    _mount("none", Path("/"), _MS_REC | _MS_PRIVATE)
    if not CONTAINER_FOLDER.is_dir():
        _add_to_parent(CONTAINER_FOLDER, models.with_name("host"))
    _mount(str(models), CONTAINER_FOLDER, _MS_BIND | _MS_REC)


def _add_to_parent(target: Path, staging: Path) -> None:
    """Create ``target`` without changing its parent:
    a tmpfs over the parent shows the parent's content.
    """
    parent = target.parent
    if parent.is_symlink() or not parent.is_dir():
        raise OSError(f"{parent} is not a folder")
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
    """Mount a file system or a folder at ``target``, as mount(2) does.

    Raises:
        OSError: the kernel refuses it.
    """
    result = _libc.mount(
        source.encode(),
        os.fsencode(target),
        None if type is None else type.encode(),
        ctypes.c_ulong(flags),
        None if data is None else data.encode(),
    )
    _check(result, f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _run_probe(*arguments: str) -> str | None:
    """Try in a process of its own whether a server can have namespaces.

    Returns:
        Why it cannot; ``None`` if it can.
    """
    try:
        done = run_child(python_command(_PROBE, *arguments), seconds=_PROBE_SECONDS)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")


def probe(what: str, *source: str) -> int:
    """Return 0 if this process can have its own mounts, or its own network."""
    try:
        enter(Path(source[0]) if source else None, has_network=what != "network")
    except OSError as error:
        print(error.strerror or error, file=sys.stderr)  # noqa: T201 - the output of the probe
        return 1
    if what == "mounts":
        return 0 if (CONTAINER_FOLDER / "probe").is_file() else 2
    return 0 if [name for _, name in socket.if_nameindex()] == ["lo"] else 2
