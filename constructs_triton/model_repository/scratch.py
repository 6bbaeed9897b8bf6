"""Temporary folders that are deleted when the process ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["scratch_directory"]


def scratch_directory() -> Path:
    """Create a folder that is deleted when the process ends."""
    return Path(tempfile.mkdtemp(dir=_root()))


@cache
def _root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="constructs-triton-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root
