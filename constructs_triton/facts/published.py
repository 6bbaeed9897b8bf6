"""Reads the JSON files of this folder. Each has the date (``as_of``) and the ``sources`` of its facts."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["load"]


@cache
def load(name: str) -> dict[str, Any]:
    """Return the content of ``<name>.json``. It is read once, on first use; do not change it."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
