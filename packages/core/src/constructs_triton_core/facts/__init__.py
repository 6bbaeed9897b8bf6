"""What AWS and NVIDIA publish and two packages need: JSON files with sources,
and typed look-ups.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["facts_of"]


def facts_of(package: str) -> Callable[[str], dict[str, Any]]:
    """Return a function that reads ``<name>.json`` in a package, once;
    do not change what it returns.
    """

    @cache
    def load(name: str) -> dict[str, Any]:
        # importlib.resources does the same, and takes as long to import as Python to start.
        content: dict[str, Any] = json.loads(pkgutil.get_data(package, f"{name}.json") or b"")
        return content

    return load


load = facts_of(__package__)
