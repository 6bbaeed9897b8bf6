"""A server's own /opt/ml and network: available, or the reason why not, without traces."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from constructs_triton_core.processes.children import python_command
from constructs_triton_tools.local.server import namespaces
from constructs_triton_tools.local.server.namespaces import (
    why_hidden,
    why_no_network_isolation,
    why_no_private_mounts,
)


def _refusal(kind: str) -> str | None:
    """Why the kernel refuses a namespace.

    Does not call the code under test, whose errors must not skip.
    """
    if sys.platform != "linux":
        return "namespaces are Linux's"
    as_root = [] if os.geteuid() == 0 else ["--map-current-user"]
    command = ["unshare", *as_root, f"--{kind}", "true"]
    if kind == "mount":
        command[-1:] = ["mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip()


def _run(program: str, *arguments: str) -> str:
    """What a program that gets the path of the module under test prints."""
    command = [sys.executable, "-c", program, namespaces.__file__, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


NO_MOUNTS, NO_NETWORK = _refusal("mount"), _refusal("net")
needs_mounts = pytest.mark.skipif(
    NO_MOUNTS is not None, reason=f"no private mounts here: {NO_MOUNTS}"
)
needs_network_isolation = pytest.mark.skipif(
    NO_NETWORK is not None, reason=f"no network isolation here: {NO_NETWORK}"
)


@needs_mounts
@needs_network_isolation
def test_both_are_available_where_the_kernel_allows_them() -> None:
    """The probes report no reason."""
    assert (why_no_private_mounts(), why_no_network_isolation()) == (None, None)


@needs_mounts
def test_only_the_process_itself_sees_its_models(tmp_path: Path) -> None:
    """Below /opt/ml are the given files, beside it what /opt had,
    and outside nothing has changed.
    """
    source = tmp_path / "ml"
    (source / "model").mkdir(parents=True)
    (source / "model" / "config.pbtxt").write_text("mine")
    before = sorted(path.name for path in Path("/opt").iterdir())
    program = (
        "import runpy, sys, os, "
        "pathlib;runpy.run_path(sys.argv[1])['enter'](pathlib.Path(sys.argv[2]), "
        "has_network=True);print(open('/opt/ml/model/config.pbtxt').read(), "
        "*sorted(set(os.listdir('/opt')) - {'ml'}))"
    )
    assert _run(program, str(source)).split() == [
        "mine",
        *[name for name in before if name != "ml"],
    ]
    assert sorted(path.name for path in Path("/opt").iterdir()) == before


def test_what_the_mount_would_hide_is_named() -> None:
    """A server or an interpreter below /opt/ml must stay visible, so the mount is not made."""
    assert why_hidden([Path("/bin/sh")]) is None
    hidden = Path("/opt/ml/code/bin/python")
    assert why_hidden([hidden]) == "/opt/ml/code/bin/python is below /opt/ml"


def test_a_refusal_of_the_platform_is_the_reason(tmp_path: Path) -> None:
    """The probe prints the kernel's error and fails, here for a folder that does not exist."""
    command = python_command(namespaces._PROBE, "mounts", str(tmp_path / "absent" / "ml"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, bool(done.stderr.strip())) == (1, True)


#: Prints the network interfaces, whether loopback works, and whether the port of the caller can be
#: reached.
CONNECT = """
import runpy, socket, sys
runpy.run_path(sys.argv[1])["enter"](None, has_network=sys.argv[2] == "True")
print(*(name for _, name in socket.if_nameindex()))
own = socket.create_server(("127.0.0.1", 0))
socket.create_connection(own.getsockname())
print(socket.socket().connect_ex(("127.0.0.1", int(sys.argv[3]))) == 0)
"""


@needs_network_isolation
@pytest.mark.parametrize("has_network", [True, False])
def test_an_isolated_process_reaches_only_itself(has_network: bool) -> None:
    """Loopback works inside; what listens on the machine's own loopback cannot be reached."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        interfaces, reached = _run(CONNECT, str(has_network), port).splitlines()
    assert reached == str(has_network)
    assert has_network or interfaces == "lo"


#: Gives up root's permissions, isolates the network, and prints the user and the group.
ENTER_AS_USER = """
import ctypes, os, runpy, sys
enter = runpy.run_path(sys.argv[1])["enter"]
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(12345)
    os.setuid(12346)
    # PR_SET_DUMPABLE: the process may write its own files in /proc again
    ctypes.CDLL(None).prctl(4, 1)
before = os.getuid(), os.getgid()
enter(None, has_network=False)
print((os.getuid(), os.getgid()) == before)
"""


@needs_network_isolation
def test_a_user_without_permissions_keeps_user_and_group() -> None:
    """In the user namespace that the process needs first,
    its user and its group are mapped to themselves.
    """
    # The other user could not write the coverage data.
    unmeasured = {
        name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")
    }
    done = subprocess.run(
        [sys.executable, "-c", ENTER_AS_USER, namespaces.__file__],
        capture_output=True,
        text=True,
        env=unmeasured,
        check=False,
    )
    if ": unshare" in done.stderr:
        pytest.skip("no user namespaces here")
    assert (done.stdout, done.stderr) == ("True\n", "")


#: Creates a folder in a parent that must not change, and prints what this process then sees in the
#: parent.
ADD_TO_PARENT = """
import pathlib, runpy, sys
names = runpy.run_path(sys.argv[1])
parent = pathlib.Path(sys.argv[2])
names["_unshare"](names["_CLONE_NEWNS"])
names["_mount"]("none", pathlib.Path("/"), names["_MS_REC"] | names["_MS_PRIVATE"])
names["_add_to_parent"](parent / "ml", parent.with_name("host"))
print(*sorted(str(path.relative_to(parent)) for path in parent.rglob("*")))
inner = parent / "folder" / "inner"
print((parent / "file").read_text(), (parent / "link").readlink(), inner.read_text())
"""


@needs_mounts
def test_a_new_folder_hides_nothing_of_its_parent(tmp_path: Path) -> None:
    """The parent's files, folders and links stay visible;
    the folder exists for this process only.
    """
    parent = tmp_path / "opt"
    (parent / "folder").mkdir(parents=True)
    (parent / "folder" / "inner").write_text("2")
    (parent / "file").write_text("1")
    (parent / "link").symlink_to("file")
    assert _run(ADD_TO_PARENT, str(parent)).splitlines() == [
        "file folder folder/inner link ml",
        "1 file 2",
    ]
    assert sorted(path.name for path in parent.iterdir()) == ["file", "folder", "link"]
