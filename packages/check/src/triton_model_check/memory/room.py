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
from triton_model_check.memory.instances import is_gpu

__all__ = ["ArchiveSize", "Room", "models_at_once"]


@dataclass(frozen=True)
class ArchiveSize:
    """What the models of an archive take at a place, in bytes; ``model`` names the archive."""

    model: str
    size: int


@dataclass(frozen=True)
class Room:
    """How many archives of a multi-model endpoint fit at one place.

    ``limit`` is what the place has for models and the server, and ``server`` what the server takes
    of it, in bytes. ``archives`` are those that use the place. ``load_limit`` is the part of a GPU
    that models may fill, if it is set; ``limit`` has only this part.
    """

    place: str
    limit: int
    server: int
    archives: tuple[ArchiveSize, ...]
    load_limit: float | None = None

    @property
    def free(self) -> int:
        """The bytes that the models of archives may take together."""
        return self.limit - self.server

    @property
    def size(self) -> int:
        """The bytes of the server and of all archives together."""
        return self.server + sum(archive.size for archive in self.archives)

    @property
    def fewest(self) -> int:
        """How many archives fit if the largest are called."""
        return _count(sorted((archive.size for archive in self.archives), reverse=True), self.free)

    @property
    def most(self) -> int:
        """How many archives fit if the smallest are called."""
        return _count(sorted(archive.size for archive in self.archives), self.free)

    def __str__(self) -> str:
        sum_of_all = f"{in_units(self.size)} of {in_units(self.limit)}"
        count = len(self.archives)
        if self.fewest == count:
            return f"{self.place}: all {count} archives stay loaded ({sum_of_all})"
        loaded = f"{self.fewest} to {self.most}" if self.fewest < self.most else str(self.fewest)
        return (
            f"{self.place}: {loaded} of {count} archives stay loaded at once, together they "
            f"need {sum_of_all}; {self._next_load()}"
        )

    def _next_load(self) -> str:
        """Say what happens when one more archive is called."""
        if self.load_limit is None and self.most == 0:
            return "each needs more than is free alone, so its load is expected to fail"
        if self.load_limit is None:
            return "a call of another one loads it and unloads what was not called for longest"
        return (
            f"Triton refuses a load that exceeds model_load_gpu_limit {self.load_limit:g} with "
            "status 400, and AWS documents that SageMaker unloads models at status 507"
        )


def models_at_once(
    estimates: Sequence[MemoryEstimate], load_limit: float | None = None
) -> list[Room]:
    """Return the room for the archives of a multi-model endpoint, for each place with a limit.

    ``estimates``
        One for each archive, whose first model names it.
    ``load_limit``
        The part of each GPU that models may fill. The estimates were calculated with it.
    """
    places: dict[str, None] = {}
    for estimate in estimates:
        places.update(dict.fromkeys(estimate.limits))

    rooms = []
    for place in places:
        sizes = [_size_of(estimate, place) for estimate in estimates if estimate.models]
        archives = tuple(archive for archive in sizes if archive.size)
        if not archives:
            continue
        first = estimates[0]
        server = sum(part.size for part in first.parts if part.place == place and not part.model)
        limited = load_limit if is_gpu(place) and load_limit != 1 else None
        rooms.append(Room(place, first.limits[place], server, archives, limited))
    return rooms


def _size_of(estimate: MemoryEstimate, place: str) -> ArchiveSize:
    size = sum(part.size for part in estimate.parts if part.place == place and part.model)
    return ArchiveSize(estimate.models[0], size)


def _count(sizes: Sequence[int], free: int) -> int:
    """Return how many of the first sizes fit."""
    return sum(total <= free for total in accumulate(sizes))
