"""Bounds the work that files of unknown origin may cause."""

from __future__ import annotations

__all__ = ["OverBudgetError"]


class OverBudgetError(ValueError):
    """A file may be correct, but reading it would take more time or memory
    than its size justifies.
    """
