"""Counts what reading files of unknown origin takes, and ends it where that is too much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constructs_triton_core.untrusted.budget import OverBudgetError

__all__ = ["UnpackBudget"]

_MOST_ELEMENTS = 2**63


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


@dataclass(slots=True)
class UnpackBudget:
    """What several archives together may still unpack to.

    Args:
        bytes_left: Unpacked bytes, also those of archives that turn out to be damaged.
        members_left: Members.
        hint: How to allow more, for the error.
    """

    bytes_left: int
    members_left: int
    hint: str

    @property
    def is_spent(self) -> bool:
        """Whether an archive has exceeded what was left."""
        return self.bytes_left < 0 or self.members_left < 0

    def spend(self, *, size: int = 0, members: int = 0) -> None:
        """Count what was unpacked.

        Raises:
            OverBudgetError: it is more than was left.
        """
        self.bytes_left -= size
        self.members_left -= members
        if self.is_spent:
            raise OverBudgetError(
                f"the archives unpack to more than is allowed for all of them; {self.hint}"
            )


def count_elements(dims: Iterable[int]) -> int:
    """Return the product of dims, at most 2**63: that of a hostile file has millions of digits."""
    count = 1
    for dim in dims:
        count = max(-_MOST_ELEMENTS, min(count * dim, _MOST_ELEMENTS))
    return count
