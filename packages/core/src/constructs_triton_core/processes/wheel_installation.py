"""Installs wheels from the package index into a folder of a cache."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.processes.children import NO_SETTINGS, STDOUT, run_child
from constructs_triton_core.untrusted.written_files import DRAFT_PREFIX

__all__ = ["draft_folder", "install_wheels"]

_LONGEST_REASON = 300
_ABANDONED_SECONDS = 3600


@contextmanager
def draft_folder(root: Path) -> Iterator[Path]:
    """Yield a folder to install into, which is deleted unless it is renamed."""
    for old in root.glob(f"{DRAFT_PREFIX}*"):  # those of killed runs
        if time.time() - old.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=root))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def install_wheels(folder: Path, packages: tuple[str, ...]) -> None:
    """Install wheels, of which no code runs, without what they need for other purposes.

    Raises:
        InvalidValueError: there is no wheel for this machine, or the index cannot be reached.
    """
    target = str(folder.absolute())
    command = [*_installer(), "--target", target, "--no-deps", "--only-binary", ":all:"]
    # uv would take indexes from a uv.toml or pyproject.toml of the checkout that is worked on.
    done = run_child([*command, *packages], seconds=None, cwd=NO_SETTINGS, stderr=STDOUT)
    if done.returncode:
        reason = " ".join(done.stdout.split())[-_LONGEST_REASON:]
        raise InvalidValueError(f"{command[0]} could not install it ({reason})")


def _installer() -> list[str]:
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    module = next((name for name in ("uv", "pip") if importlib.util.find_spec(name)), None)
    if module is None:
        raise InvalidValueError("neither uv nor pip is installed; run `python -m ensurepip`")
    chosen = ["--python", sys.executable] if module == "uv" else ["--no-compile"]
    command = ["pip", "install"] if module == "uv" else ["install"]
    return [sys.executable, "-I", "-m", module, *command, *chosen]
