"""Reads the JSON files of this folder. Each has the date (``as_of``) and the ``sources`` of its facts."""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from typing import Any

__all__ = ["load"]


@cache
def load(name: str) -> dict[str, Any]:
    """Return the content of ``<name>.json``. It is read once, on first use; do not change it."""
    # importlib.resources does the same, and takes as long to import as Python to start.
    content: dict[str, Any] = json.loads(pkgutil.get_data(__package__, f"{name}.json") or b"")
    return content
