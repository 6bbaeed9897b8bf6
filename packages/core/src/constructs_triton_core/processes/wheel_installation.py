"""Installs wheels from the package index into a folder of a cache."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.processes.children import NO_SETTINGS, STDOUT, run_child
from constructs_triton_core.untrusted.drafts import is_taken, lock, partial_folder, remove_abandoned
from constructs_triton_core.untrusted.terminal import print_note

__all__ = ["install_wheels", "sole_installation"]

_LONGEST_REASON = 300


@contextmanager
def sole_installation(root: Path, name: str, what: str) -> Iterator[Path]:
    """Yield a folder to install into, which is deleted unless it is renamed.

    Another command that installs the same waits until this one has ended. So the caller looks again
    whether it is installed, and no command replaces what another one is running already.

    Args:
        root: The folder of the cache.
        name: Name of the entry.
        what: What is installed, for the note of a command that waits.

    Raises:
        OSError: the cache cannot be written.
    """
    # No link is followed; the lock ends with the process.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(root / f"{name}.lock", flags, 0o600)
    try:
        if is_taken(descriptor):
            print_note(f"waiting for another command, which is installing {what}")
            lock(descriptor, wait=True)
        remove_abandoned(root)
        with partial_folder(root) as draft:
            yield draft
    finally:
        os.close(descriptor)


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
