"""How many models of a multi-model endpoint stay loaded at once.

SageMaker loads a model at its first call, on every GPU that its instances name, and unloads models
when a load needs memory (AWS documentation, multi-model-caching). At how much memory it begins is
not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from triton_model_check.memory.estimate import MemoryEstimate, in_units


@dataclass(frozen=True)
class Room:
    """How many archives of a multi-model endpoint fit at one place.

    ``fewest`` if the largest are called, ``most`` if the smallest are. ``archives`` is how many use
    the place, and ``size`` what they take together, in bytes.
    """

    place: str
    limit: int
    archives: int
    size: int
    fewest: int
    most: int

    def __str__(self) -> str:
        sum_of_all = f"{in_units(self.size)} of {in_units(self.limit)}"
        if self.fewest == self.archives:
            return f"{self.place}: all {self.archives} archives stay loaded ({sum_of_all})"
        count = f"{self.fewest} to {self.most}" if self.fewest < self.most else str(self.fewest)
        return (
            f"{self.place}: {count} of {self.archives} archives stay loaded at once, together they "
            f"need {sum_of_all}; a call of another one loads it and unloads what was not called "
            "for longest"
        )


def models_at_once(estimates: Sequence[MemoryEstimate]) -> list[Room]:
    """Return the room for the archives of a multi-model endpoint, for each place with a limit.

    ``estimates``: one for each archive.
    """
    rooms = []
    for place in dict.fromkeys(place for estimate in estimates for place in estimate.limits):
        sizes = sorted(filter(None, (_of_models(estimate, place) for estimate in estimates)))
        if not sizes:
            continue
        limit = estimates[0].limits[place]
        server = estimates[0].total(place) - _of_models(estimates[0], place)
        rooms.append(
            Room(
                place,
                limit,
                archives=len(sizes),
                size=server + sum(sizes),
                fewest=_count(sizes[::-1], limit - server),
                most=_count(sizes, limit - server),
            )
        )
    return rooms


def _of_models(estimate: MemoryEstimate, place: str) -> int:
    return sum(part.size for part in estimate.parts if part.place == place and part.model)


def _count(sizes: Sequence[int], free: int) -> int:
    """Return how many of the first sizes fit."""
    return sum(total <= free for total in accumulate(sizes))
