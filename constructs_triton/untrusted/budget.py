"""Bounds the work that a file of unknown origin may cause."""

from __future__ import annotations

__all__ = ["Budget", "OverBudgetError"]


class OverBudgetError(ValueError):
    """A file may be correct, but reading it would take more time or memory than its size justifies."""


class Budget:
    """The steps that reading one file may take.

    A step is a field or a kept value: about a microsecond, and at most 100 bytes.

    Args:
        steps: How many steps there are.
        what: What is counted, for the error, such as ``"fields and operators"``.
    """

    __slots__ = ("_what", "left", "steps")

    def __init__(self, steps: int, what: str) -> None:
        self.steps = self.left = steps
        self._what = what

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        Raises:
            OverBudgetError: the file takes more steps than it may.
        """
        self.left -= steps
        if self.left < 0:
            raise OverBudgetError(f"it has more than {self.steps} {self._what}")
