"""The environment variables that the Triton container reads, from ``environment.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from triton_model_check.facts.published import load

__all__ = ["VariableFacts", "variables"]


@dataclass(frozen=True, slots=True)
class VariableFacts:
    """One environment variable of the container.

    ``since`` is the first release that reads it, ``until`` the first that no longer does.
    ``default`` is the value that the image uses without it. ``mode`` is the only endpoint mode that
    reads it; ``None`` is both.
    """

    keyword: str
    name: str
    since: str
    default: str
    meaning: str
    until: str | None = None
    mode: Literal["single", "multi-model"] | None = None


def variables() -> dict[str, VariableFacts]:
    """Return all variables that :class:`TritonEnvironment` has a keyword for, by that keyword."""
    rows: dict[str, dict[str, Any]] = load("environment")["variables"]
    return {keyword: VariableFacts(keyword=keyword, **row) for keyword, row in rows.items()}
