"""The private /opt/ml: available, or the reason why not; never a trace on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from constructs_triton.local.server import private_mounts
from constructs_triton.local.server.private_mounts import why_unavailable

REASON = why_unavailable([]) if sys.platform == "linux" else "mount namespaces are Linux's"
needs_mounts = pytest.mark.skipif(REASON is not None, reason=f"no private mounts here: {REASON}")


@needs_mounts
def test_only_the_process_itself_sees_its_models(tmp_path: Path) -> None:
    """Below /opt/ml are the given files, beside it what /opt had, and outside nothing has changed."""
    source = tmp_path / "ml"
    (source / "model").mkdir(parents=True)
    (source / "model" / "config.pbtxt").write_text("mine")
    before = sorted(path.name for path in Path("/opt").iterdir())
    program = (
        "import runpy, sys, os, pathlib;"
        "runpy.run_path(sys.argv[1])['enter'](pathlib.Path(sys.argv[2]));"
        "print(open('/opt/ml/model/config.pbtxt').read(), *sorted(set(os.listdir('/opt')) - {'ml'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, private_mounts.__file__, str(source)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["mine", *[name for name in before if name != "ml"]]
    assert sorted(path.name for path in Path("/opt").iterdir()) == before


def test_what_the_mount_would_hide_is_named() -> None:
    """A server or an interpreter below /opt/ml must stay visible, so the mount is not made."""
    assert why_unavailable([Path("/opt/ml/code/bin/python")]) == "/opt/ml/code/bin/python lies below /opt/ml"


def test_a_refusal_of_the_platform_is_the_reason(tmp_path: Path) -> None:
    """The probe prints what the kernel said and fails; here a folder that does not exist."""
    done = subprocess.run(
        [sys.executable, "-I", private_mounts.__file__, str(tmp_path / "absent" / "ml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip()
