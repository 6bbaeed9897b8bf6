"""The environment variables that the Triton container reads, from ``environment.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from constructs_triton.facts.published import load

__all__ = ["VariableFacts", "variables"]


@dataclass(frozen=True, slots=True)
class VariableFacts:
    """One variable of the container.

    ``since`` is the first release that reads it, ``until`` the first that no longer does. ``default`` is what
    the image does without it. ``mode`` is the only endpoint mode that reads it, ``None`` both.
    """

    keyword: str
    name: str
    since: str
    default: str
    meaning: str
    until: str | None = None
    mode: Literal["single", "multi-model"] | None = None


def variables() -> dict[str, VariableFacts]:
    """All variables that have a keyword of :class:`TritonEnvironment`, by that keyword."""
    rows: dict[str, dict[str, Any]] = load("environment")["variables"]
    return {keyword: VariableFacts(keyword=keyword, **row) for keyword, row in rows.items()}
