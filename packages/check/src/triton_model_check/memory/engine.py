"""What an engine for language models takes of the GPUs that it chooses itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

RESERVES = "reserves"
"""How the name of a use begins that is a fraction of the GPU."""


class GpuUse(NamedTuple):
    """What an engine takes of one GPU, in bytes."""

    gpu: int
    what: str
    size: int


@dataclass(frozen=True)
class EngineMemory:
    """What all engines of a model take, and what is not known of them."""

    uses: tuple[GpuUse, ...] = ()
    not_counted: tuple[str, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[EngineMemory]) -> EngineMemory:
        """Return the sum of several, such as those of the versions of a model.

        What several instances take for the same reason is one use.
        """
        uses: dict[tuple[int, str], int] = {}
        notes: dict[str, None] = {}
        for part in parts:
            for use in part.uses:
                uses[use.gpu, use.what] = uses.get((use.gpu, use.what), 0) + use.size
            notes.update(dict.fromkeys(part.not_counted))
        listed = tuple(GpuUse(gpu, what, size) for (gpu, what), size in uses.items())
        return cls(listed, tuple(notes))


def times(what: str, count: int) -> str:
    """Return what several instances take, in words."""
    return what if count == 1 else f"{what}, {count} instances"


def folder_of(place: str, model: str, directory: Path) -> Path | None:
    """Return the folder of a model's directory that a path on the server names.

    A server can have its repository anywhere, so what follows the name of the model counts.
    ``None`` if the path leads elsewhere.
    """
    parts = place.rstrip("/").split("/")
    if not place.startswith("/") or ".." in parts or model not in parts:
        return None
    below = _after_last(parts, model)
    folder = directory.joinpath(*(part for part in below if part not in ("", ".")))
    return folder if folder.is_dir() else None


def _after_last(parts: Sequence[str], name: str) -> Sequence[str]:
    return parts[len(parts) - parts[::-1].index(name) :]
