"""The JSON files of this folder: what AWS and NVIDIA publish, each with ``as_of`` and ``sources``."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["load"]


@cache
def load(name: str) -> dict[str, Any]:
    """The parsed file ``<name>.json``; read once, on first use, and never changed by its readers."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
