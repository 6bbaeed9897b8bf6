"""The JSON files of this folder: what AWS and NVIDIA publish, each with ``as_of`` and ``sources``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["did_you_mean", "load"]


@cache
def load(name: str) -> dict[str, Any]:
    """The parsed file ``<name>.json``; read once, on first use, and never changed by its readers."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``'did you mean "x"?'`` for the nearest of ``known``, or nothing where none is near."""
    nearest = get_close_matches(word, list(known), n=1, cutoff=0.75)
    return f'did you mean "{nearest[0]}"?' if nearest else ""
