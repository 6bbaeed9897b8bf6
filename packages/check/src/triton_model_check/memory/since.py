"""Figures that change with the release of the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from constructs_triton_core.facts.versions import is_at_least


def value_since(figures: Sequence[Mapping[str, Any]], release: str | None) -> int:
    """Return the figure of a release; the smallest one if the release is not known.

    ``figures`` are from the oldest to the newest, each with the first release that has it.
    """
    values = [
        int(figure["value"])
        for figure in figures
        if release is not None and is_at_least(release, figure["since"])
    ]
    return values[-1] if values else min(int(figure["value"]) for figure in figures)
