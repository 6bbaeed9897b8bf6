"""Folders that last as long as this process."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["scratch_directory"]


def scratch_directory() -> Path:
    """A new folder, removed with all others when the process ends."""
    return Path(tempfile.mkdtemp(dir=_root()))


@cache
def _root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="constructs-triton-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root
